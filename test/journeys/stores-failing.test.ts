// A gateway responds to real requests while its stores fail.
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { accountOperations } from '../../src/endpoints/account.ts'
import { emailOperations } from '../../src/endpoints/email.ts'
import { sessionOperations } from '../../src/endpoints/own-sessions.ts'
import { passwordOperations } from '../../src/endpoints/password.ts'
import { resetOperations } from '../../src/endpoints/reset.ts'
import { upgradeOperations } from '../../src/endpoints/upgrade.ts'
import { userOperations } from '../../src/endpoints/user.ts'
import type { Operation } from '../../src/openapi/operation.ts'
import { type Answer, call, giveKey, login, newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { mailSection } from '../support/mailed.ts'
import { expectRefusal } from '../support/refusals.ts'
import { scrape } from '../support/scrape.ts'
import { type Server, startPostgres, startRedis } from '../support/servers.ts'
import { describeWithPostgresBinary, describeWithRedisBinary } from '../support/services.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

/** The endpoints that look up a mailed code and read no credential. */
const withCodes = [...Object.values<Operation>(resetOperations), emailOperations.verify]
const guarded = [userOperations, sessionOperations, accountOperations, passwordOperations]
  .flatMap(each => Object.values<Operation>(each))
  .concat(emailOperations.requestVerification, emailOperations.requestChange, emailOperations.confirmChange)

describeWithPostgresBinary('a gateway whose stores fail', () => {
  describeWithRedisBinary('one after the other', () => {
    let postgres: Server
    let redis: Server
    let upstream: Upstream
    let gateway: TestGateway
    beforeAll(async () => {
      ;[postgres, redis, upstream] = await Promise.all([
        startPostgres(inject('postgresBin')),
        startRedis(inject('redisBin')),
        startUpstream(),
      ])
      gateway = await startGateway(`${routes(upstream.url)}${mailSection()}account: { deletion: true }\n`, {
        postgres: postgres.url,
        redis: redis.url,
      })
    })
    afterAll(async () => {
      await gateway?.stop()
      await Promise.all([postgres?.stop(), redis?.stop(), upstream?.close()])
    })

    const course = (user: TestUser) => call(gateway.url, 'GET', '/courses/1', { token: user.access })
    const isRedisUp = () => gateway.backing.scriptRunner?.isUp()
    const today = () => new Date(gateway.clock.at).toISOString().slice(0, 10)

    async function firstPassesSecondDoesNot(between: () => Promise<void> = async () => {}) {
      const user = await newUser(gateway)
      expect((await course(user)).status).toBe(200)
      await between()
      expect((await course(user)).status).toBe(429)
      const [record] = await gateway.sql('select daily_usage, last_usage_date from users where id = $1', [
        user.id,
      ])
      expect(record).toEqual({ daily_usage: 1, last_usage_date: today() })
    }

    it('allows exactly one use per day while Redis is down', async () => {
      const fallbacks = async () => (await scrape(gateway.admin)).value('peage_daily_usage_fallback_total')
      const before = await fallbacks()
      await firstPassesSecondDoesNot(() => redis.kill())
      await firstPassesSecondDoesNot()
      expect(await fallbacks()).toBeGreaterThan(before)
      expect((await scrape(gateway.admin)).value('peage_redis_up')).toBe(0)
      const ready = await call(gateway.admin, 'GET', '/readyz')
      expect([ready.status, ready.body]).toMatchObject([
        200,
        { status: 'degraded', checks: { postgres: 'ok', redis: 'down' } },
      ])
      await redis.restart()
      await expect.poll(isRedisUp).toBe(true)
      await firstPassesSecondDoesNot()
    })

    it('if a use cannot be stored, refuses the request within 2 s, does not forward it, and counts no use', async () => {
      const user = await newUser(gateway)
      expect((await call(gateway.url, 'GET', '/any/x', { token: user.access })).status).toBe(200)
      const failed = async () =>
        (await scrape(gateway.admin)).value('peage_guard_decisions_total', {
          guard: 'free_daily',
          decision: 'error',
        })
      const before = await failed()
      upstream.received.length = 0
      const { answer, took } = await gateway.backing.database.transaction(async tx => {
        await tx.query('select 1 from users where id = $1 for update', [user.id])
        return timed(() => course(user))
      })
      expect([answer.status, answer.body]).toEqual([503, { error: 'Service indisponible' }])
      expect(took).toBeLessThan(2_000)
      expect([await failed(), upstream.received]).toEqual([before + 1, []])
      expect((await course(user)).status).toBe(200)
    })

    it('logs one line when Postgres goes down and one when it is back', async () => {
      const patiently = { timeout: 14_000 }
      const lines = () =>
        gateway.log.map(line => JSON.parse(line)).filter(({ msg }) => /^postgres is (up|down)$/.test(msg))
      await postgres.kill()
      try {
        await expect.poll(() => lines().length, patiently).toBe(1)
      } finally {
        await postgres.restart()
      }
      await expect.poll(() => lines().length, patiently).toBe(2)
      const reason = expect.stringContaining('ECONNREFUSED')
      expect(lines()).toMatchObject([
        { level: 40, msg: 'postgres is down', reason },
        { level: 30, msg: 'postgres is up' },
      ])
    })

    it.each(['stopped', 'hanging'])(
      'while Postgres is %s, returns 503 within 2 s, never 401 for a valid token, and forwards nothing',
      async how => {
        const user = await newUser(gateway)
        const fresh = await login(gateway.url, user.email, user.password)
        const pro = await newUser(gateway, 'pro')
        const proKey = `peage_while_${how}`
        await giveKey(gateway, pro, proKey)
        if (how === 'stopped') await postgres.kill()
        else postgres.pause()
        upstream.received.length = 0
        try {
          const timedAnswers = await Promise.all([
            timed(() => course(user)),
            timed(() => call(gateway.url, 'GET', '/any/x', { token: user.access })),
            timed(() =>
              call(gateway.url, 'POST', '/api/v1/auth/login', { body: { email: user.email, password: 'x' } }),
            ),
            timed(() =>
              call(gateway.url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token: fresh.refresh } }),
            ),
          ])
          for (const { answer, took } of timedAnswers) {
            expect([answer.status, answer.body]).toEqual([503, { error: 'Service indisponible' }])
            expect(answer.headers.get('retry-after')).toBe('1')
            expect(answer.headers.get('x-peage-error')).toBe('service_unavailable')
            expect(took).toBeLessThan(2_000)
          }
          const key = await timed(() =>
            call(gateway.url, 'GET', '/any/x', { headers: { 'x-api-key': 'peage_some' } }),
          )
          expect([key.answer.status, key.answer.body]).toEqual([401, { error: 'Token invalide ou expiré' }])
          expect(key.answer.headers.get('x-peage-error')).toBe('key_check_failed')
          expect(key.answer.headers.get('retry-after')).toBe('1')
          const registering = await timed(() =>
            call(gateway.url, 'POST', '/api/v1/auth/register', {
              body: { email: `new.${how}@example.com`, password: 'correct horse battery' },
            }),
          )
          expect([registering.answer.status, registering.answer.body]).toEqual([
            500,
            { error: 'Erreur interne' },
          ])
          expect(Math.max(key.took, registering.took)).toBeLessThan(2_000)
          expect((await call(gateway.url, 'GET', '/public/x')).status).toBe(200)
          expect((await call(gateway.admin, 'GET', '/readyz')).status).toBe(503)
          expect((await call(gateway.admin, 'GET', '/readyz?for=public')).status).toBe(200)
          expect(upstream.received.map(seen => seen.url)).toEqual(['/public/x'])
          await logoutIsKept(user)
          await ownEndpointsAreUnavailable(pro, proKey)
        } finally {
          if (how === 'stopped') await postgres.restart()
          else postgres.resume()
        }
        await expect
          .poll(
            () =>
              call(gateway.url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token: user.refresh } }),
            {
              timeout: 10_000,
            },
          )
          .toMatchObject({ status: 401, body: { error: 'Refresh token invalide, révoqué ou expiré' } })
        expect((await course(user)).status).toBe(200)
      },
    )

    it('counts the failures of Postgres; each kind is logged once a minute, with a count and without a stack trace', async () => {
      const user = await newUser(gateway)
      const from = gateway.log.length
      const told = (text: string) =>
        gateway.log
          .slice(from)
          .map(line => JSON.parse(line))
          .filter(({ msg }) => msg === text)
      const fail = async () => {
        const answer = await call(gateway.url, 'GET', '/any/x', { token: user.access })
        expect(answer.status).toBe(503)
      }
      const pending = 'revocations of logged-out tokens are not stored yet'
      // Earlier tests may already have caused log lines in this minute, so the clock moves to the next minute.
      gateway.clock.at += 60_000
      await postgres.kill()
      try {
        await expect
          .poll(async () => (await scrape(gateway.admin)).value('peage_change_feed_trusted'))
          .toBe(0)
        const before = await scrape(gateway.admin)
        for (let i = 0; i < 3; i += 1) await fail()
        await logoutIsKept(user)
        const { email, password } = user
        await call(gateway.url, 'POST', '/api/v1/auth/login', { body: { email, password } })
        const grown = async () => {
          const now = await scrape(gateway.admin)
          return (
            [
              ['peage_guard_decisions_total', { guard: 'authenticate', decision: 'error' }],
              ['peage_identity_cache_total', { result: 'bypass' }],
              ['peage_auth_total', { endpoint: 'login', outcome: 'service_unavailable' }],
              ['peage_pending_logouts', {}],
            ] as const
          ).map(([name, labels]) => now.value(name, labels) > before.value(name, labels))
        }
        await expect.poll(grown).toEqual([true, true, true, true])
        await expect.poll(() => told(pending).length).toBe(1)
        const reason = expect.stringContaining('ECONNREFUSED')
        expect(told('service_unavailable')).toMatchObject([{ reason }])
        gateway.clock.at += 60_000
        await fail()
        expect(told('service_unavailable')).toMatchObject([{}, { reason, failures: 4 }])
        await expect.poll(() => told(pending)).toMatchObject([{ pending: 1 }, { pending: 1, reason }])
        expect(gateway.log.slice(from).filter(line => line.includes('"stack"'))).toEqual([])
      } finally {
        await postgres.restart()
      }
      const stored = async () => (await scrape(gateway.admin)).value('peage_pending_logouts')
      await expect.poll(stored).toBe(0)
    })

    /**
     * Expects that requests with an access token or a code get 503, and that requests with an API key get 401. If an
     * operator sends an alert or lists deliveries, the operator also gets 503.
     */
    async function ownEndpointsAreUnavailable(user: TestUser, key: string): Promise<void> {
      const away = [503, 'service_unavailable', 'Service indisponible'] as const
      const body = {
        url: 'https://8.8.8.8/hook',
        email: 'somebody@example.com',
        current_password: user.password,
        new_password: 'un autre mot de passe',
      }
      const inTime = async (work: Promise<Answer>, ...refusal: readonly [number, string, string]) => {
        const { answer, took } = await timed(() => work)
        expect(took).toBeLessThan(2_000)
        expect(answer.headers.get('retry-after')).toBe('1')
        expectRefusal(answer, ...refusal)
      }
      const send = ({ method, path }: Operation, more: Parameters<typeof call>[3]) =>
        call(gateway.url, method, path.replace(':id', 'x'), more)
      const sendGuarded = (operation: Operation) => {
        const content = operation.method === 'GET' ? {} : { body }
        const headers = { 'x-api-key': key }
        return [
          inTime(send(operation, { token: user.access, ...content }), ...away),
          inTime(
            send(operation, { headers, ...content }),
            401,
            'key_check_failed',
            'Token invalide ou expiré',
          ),
        ]
      }
      const token = 'A'.repeat(64)
      await Promise.all([
        ...guarded.flatMap(sendGuarded),
        ...withCodes.flatMap(operation =>
          [{ token }, { code: '12345678' }].map(by =>
            inTime(send(operation, { body: { ...body, ...by } }), ...away),
          ),
        ),
        inTime(send(emailOperations.confirmChange, { body: { token } }), ...away),
      ])
      // The upgrade endpoints read only the user. If Postgres hangs, they still use the cached user for a while.
      const show = () => send(upgradeOperations.show, { token: user.access })
      await expect.poll(async () => (await show()).status, { timeout: 5_000 }).toBe(503)
      await Promise.all(Object.values<Operation>(upgradeOperations).flatMap(sendGuarded))
      const operator = { token: gateway.adminToken }
      await Promise.all([
        inTime(
          call(gateway.admin, 'POST', '/admin/v1/alerts', { ...operator, body: { type: 'x' } }),
          ...away,
        ),
        inTime(call(gateway.admin, 'GET', '/admin/v1/deliveries', operator), ...away),
      ])
    }

    /**
     * Expects that logout returns 200 while Postgres is down. The gateway revokes the token later, when Postgres is
     * back.
     */
    async function logoutIsKept(user: TestUser): Promise<void> {
      const { answer, took } = await timed(() =>
        call(gateway.url, 'POST', '/api/v1/auth/logout', { body: { refresh_token: user.refresh } }),
      )
      expect([answer.status, answer.body]).toEqual([200, { message: 'Déconnexion réussie' }])
      expect(took).toBeLessThan(2_000)
    }
  })
})

async function timed<T>(work: () => Promise<T>): Promise<{ answer: T; took: number }> {
  const started = performance.now()
  const answer = await work()
  return { answer, took: performance.now() - started }
}
