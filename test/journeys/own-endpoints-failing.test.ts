// CONTRACT §4, "Storage down", at the endpoints of §5 and §12, and at those of §7 for alerts.
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { accountOperations } from '../../src/endpoints/account.ts'
import { emailOperations } from '../../src/endpoints/email.ts'
import { sessionOperations } from '../../src/endpoints/own-sessions.ts'
import { passwordOperations } from '../../src/endpoints/password.ts'
import { resetOperations } from '../../src/endpoints/reset.ts'
import { upgradeOperations } from '../../src/endpoints/upgrade.ts'
import { userOperations } from '../../src/endpoints/user.ts'
import type { Operation } from '../../src/openapi/operation.ts'
import { type Answer, call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { mailSection } from '../support/mailed.ts'
import { expectRefusal } from '../support/refusals.ts'
import { type Server, startPostgres } from '../support/servers.ts'
import { describeWithPostgresBinary } from '../support/services.ts'

/** Those that look at no credential; what each is sent has to be looked up. */
const open = [...Object.values<Operation>(resetOperations), emailOperations.verify]
const guarded = [userOperations, sessionOperations, accountOperations, passwordOperations]
  .flatMap(each => Object.values<Operation>(each))
  .concat(emailOperations.requestVerification, emailOperations.requestChange, emailOperations.confirmChange)
/** They ask the store for the user alone, who is known for as long as the feed is trusted. */
const answeredFromMemory = Object.values<Operation>(upgradeOperations)

describeWithPostgresBinary('the gateway’s own endpoints, while Postgres is away', () => {
  let postgres: Server
  let gateway: TestGateway
  let user: TestUser
  beforeAll(async () => {
    postgres = await startPostgres(inject('postgresBin'))
    gateway = await startGateway(`${mailSection()}account: { deletion: true }`, {
      postgres: postgres.url,
      redis: '',
    })
    user = await newUser(gateway, 'pro')
    await giveKey(gateway, user, 'peage_while_away')
  })
  afterAll(async () => {
    await gateway?.stop()
    await postgres?.stop()
  })

  const body = {
    url: 'https://8.8.8.8/hook',
    email: 'somebody@example.com',
    current_password: 'correct horse battery',
    new_password: 'un autre mot de passe',
  }
  const token = 'A'.repeat(64)
  async function inTime(work: Promise<Answer>): Promise<Answer> {
    const begun = performance.now()
    const answer = await work
    expect(performance.now() - begun).toBeLessThan(2_000)
    expect(answer.headers.get('retry-after')).toBe('1')
    return answer
  }

  it.each(['stopped', 'hanging'])(
    '%s: 503 to a token and to a code, and 401 to a key, within 2 s',
    async how => {
      if (how === 'stopped') await postgres.kill()
      else postgres.pause()
      try {
        const away = [503, 'service_unavailable', 'Service indisponible'] as const
        const send = ({ method, path }: Operation, more: Parameters<typeof call>[3]) =>
          inTime(call(gateway.url, method, path.replace(':id', 'x'), more))
        const sendGuarded = (operation: Operation) => {
          const content = operation.method === 'GET' ? {} : { body }
          const headers = { 'x-api-key': 'peage_while_away' }
          return [
            send(operation, { token: user.access, ...content }).then(answer =>
              expectRefusal(answer, ...away),
            ),
            send(operation, { headers, ...content }).then(answer =>
              expectRefusal(answer, 401, 'key_check_failed', 'Token invalide ou expiré'),
            ),
          ]
        }
        await Promise.all([
          ...guarded.flatMap(sendGuarded),
          ...open.flatMap(operation =>
            [
              { ...body, token },
              { ...body, code: '12345678' },
            ].map(async sent => expectRefusal(await send(operation, { body: sent }), ...away)),
          ),
          send(emailOperations.confirmChange, { body: { token } }).then(answer =>
            expectRefusal(answer, ...away),
          ),
        ])
        // Where it hangs, the feed is trusted for a while longer.
        const showUpgrade = () =>
          call(gateway.url, 'GET', upgradeOperations.show.path, { token: user.access })
        await expect.poll(async () => (await showUpgrade()).status, { timeout: 5_000 }).toBe(503)
        await Promise.all(answeredFromMemory.flatMap(sendGuarded))
        const operator = { token: gateway.adminToken }
        const admin = [
          call(gateway.admin, 'POST', '/admin/v1/alerts', { ...operator, body: { type: 'x' } }),
          call(gateway.admin, 'GET', '/admin/v1/deliveries', operator),
        ]
        for (const answer of await Promise.all(admin.map(inTime))) {
          expectRefusal(answer, 503, 'service_unavailable', 'Service indisponible')
        }
      } finally {
        if (how === 'stopped') await postgres.restart()
        else postgres.resume()
      }
      await expect
        .poll(
          () =>
            call(gateway.url, 'POST', '/api/v1/user/webhook', { token: user.access, body }).then(
              ({ status }) => status,
            ),
          { timeout: 10_000 },
        )
        .toBe(201)
    },
  )
})
