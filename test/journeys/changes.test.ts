// A change to a user or key applies at once on the replica that makes it, and within 50 ms on all other replicas.
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { watchEventLoop } from '../support/event-loop.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { describeWithServices } from '../support/services.ts'
import { describeOverSetups, services } from '../support/setups.ts'
import { type StallingRelay, startStallingRelay } from '../support/stalling-relay.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

type Credential = { token: string } | { headers: { 'x-api-key': string } }

const get = (gateway: TestGateway, path: string, as: Credential): Promise<Answer> =>
  call(gateway.url, 'GET', path, as)

/** Waits until the replica trusts its change feed. From then on, a request of a cached user runs no SQL statement. */
async function remembers(gateway: TestGateway, user: TestUser): Promise<void> {
  const cost = async () => {
    const before = gateway.statements.length
    expect((await get(gateway, '/any/x', { token: user.access })).status).toBe(200)
    return gateway.statements.length - before
  }
  await expect.poll(cost, { timeout: 5_000, interval: 10 }).toBe(0)
}

/** The time in milliseconds after a commit in which a response may still be based on the old state. */
const grace = 50

describeOverSetups('changes', setup => {
  let stores: Stores
  let upstream: Upstream
  let replicas: TestGateway[] = []
  /** The connection of another program that changes the database. */
  let program: Client | undefined
  /**
   * A separate connection that gets the same notifications as the gateways. If a notification arrives late on this
   * connection too, the database was slow and not the gateways.
   */
  let witness: Client | undefined
  let witnessed = Number.POSITIVE_INFINITY
  const loop = watchEventLoop()
  let first: TestGateway

  beforeAll(async () => {
    stores = await setup.open()
    upstream = await startUpstream()
    const count = stores.postgres === '' ? 1 : 2
    replicas = await Promise.all(
      Array.from({ length: count }, () => startGateway(routes(upstream.url), stores)),
    )
    first = replicas[0] ?? expect.unreachable()
    if (stores.postgres === '') return
    program = new Client({ connectionString: stores.postgres })
    witness = new Client({ connectionString: stores.postgres })
    witness.on('notification', () => {
      witnessed = performance.now()
    })
    await Promise.all([program.connect(), witness.connect()])
    await witness.query('listen peage_changes')
  })
  afterAll(async () => {
    loop.stop()
    await witness?.end()
    await program?.end()
    await Promise.all(replicas.map(replica => replica.stop()))
    await upstream?.close()
    if (stores !== undefined) await setup.drop(stores)
  })

  const sql = (text: string, values: unknown[]) =>
    program === undefined ? first.sql(text, values) : program.query(text, values)

  /**
   * Commits the changes one after the other. Meanwhile, sends a request to every replica every 5 ms. If a request is
   * sent more than `grace` milliseconds after the commit, its response must be based on the new state.
   */
  async function expectInTime(
    path: string,
    as: Credential,
    changes: readonly { sql: string; values: unknown[]; status: number }[],
    rounds: number,
  ): Promise<void> {
    const late: string[] = []
    let told = 0
    for (let round = 0; round < rounds; round += 1) {
      const change = changes[round % changes.length] ?? expect.unreachable()
      witnessed = Number.POSITIVE_INFINITY
      await sql(change.sql, change.values)
      const committed = performance.now()
      const pending: Promise<void>[] = []
      while (performance.now() - committed < 2 * grace) {
        for (const replica of replicas) {
          const sent = performance.now()
          pending.push(
            get(replica, path, as).then(({ status }) => {
              if (status === change.status || sent - committed < grace) return
              const untilWitnessed = witness === undefined ? 0 : Math.min(witnessed, sent) - committed
              if (loop.delayBetween(committed, sent) > 20 || untilWitnessed > 20) told += 1
              else late.push(`${status} ${(sent - committed).toFixed(1)} ms after: ${change.sql}`)
            }),
          )
        }
        await sleep(5)
      }
      await Promise.all(pending)
    }
    expect(late).toEqual([])
    if (told > 0)
      console.warn(`${told} late responses while the process or database was delayed by more than 20 ms`)
    expect(told).toBeLessThan(rounds)
  }

  it('a change to is_active by raw SQL takes effect on every replica within 50 ms', async () => {
    const user = await newUser(first)
    for (const replica of replicas) await remembers(replica, user)
    const to = (flag: number, status: number) => ({
      sql: 'update users set is_active = $2 where id = $1',
      values: [user.id, flag],
      status,
    })
    await expectInTime('/any/x', { token: user.access }, [to(0, 401), to(1, 200)], 20)
  })

  it('the revocation or the restoration of an API key by raw SQL takes effect on every replica within 50 ms', async () => {
    const user = await newUser(first, 'pro')
    for (const replica of replicas) await remembers(replica, user)
    const key = `peage_key_of_${user.id}`
    const as = { headers: { 'x-api-key': key } }
    expect((await get(first, '/any/x', as)).status).toBe(401)
    await giveKey(first, user, key)
    const to = (revoked: number, status: number) => ({
      sql: 'update api_tokens set revoked = $2 where user_id = $1',
      values: [user.id, revoked],
      status,
    })
    await expectInTime('/any/x', as, [to(0, 200), to(1, 401)], 20)
  })

  it('a change by an operator takes effect at the next request to the replica that received the change', async () => {
    const user = await newUser(first, 'pro')
    await remembers(first, user)
    const patch = async (body: object) => {
      const answer = await call(first.admin, 'PATCH', `/admin/v1/users/${user.id}`, {
        token: first.adminToken,
        body,
      })
      expect(answer.status).toBe(200)
    }
    const status = async () => (await get(first, '/pro', { token: user.access })).status
    for (let round = 0; round < 20; round += 1) {
      await patch({ is_active: 0 })
      expect(await status()).toBe(401)
      await patch({ is_active: 1 })
      expect(await status()).toBe(200)
      await patch({ plan: 'premium' })
      expect(await status()).toBe(403)
      await patch({ plan: 'pro' })
      expect(await status()).toBe(200)
    }
  })

  describe('if nothing changes', () => {
    /**
     * Matches the statements of background work: sending deliveries, deleting expired rows, and storing when a key was
     * used.
     */
    const background = /webhook_deliveries|delete from refresh_tokens|set last_used_at|skip locked/
    const costOf = async (work: () => Promise<unknown>) => {
      const before = first.statements.length
      await work()
      return first.statements.slice(before).filter(statement => !background.test(statement))
    }

    it('a request with a cached token or API key runs no SQL statement', async () => {
      const user = await newUser(first, 'pro')
      const key = `peage_seen_${user.id}`
      await giveKey(first, user, key)
      await remembers(first, user)
      await get(first, '/any/x', { headers: { 'x-api-key': key } })
      const cost = await costOf(async () => {
        for (let request = 0; request < 20; request += 1) {
          expect((await get(first, '/pro', { token: user.access })).status).toBe(200)
          expect((await get(first, '/pro', { headers: { 'x-api-key': key } })).status).toBe(200)
        }
      })
      expect(cost).toEqual([])
    })
  })
})

describeWithServices('a replica whose Postgres stops responding', () => {
  let stores: Stores
  let upstream: Upstream
  let relay: StallingRelay
  let replicas: TestGateway[] = []
  beforeAll(async () => {
    stores = await services.open()
    upstream = await startUpstream()
    relay = await startStallingRelay(stores.postgres)
    replicas = await Promise.all([
      startGateway(routes(upstream.url), stores),
      startGateway(routes(upstream.url), { ...stores, postgres: relay.url }),
    ])
  })
  afterAll(async () => {
    relay?.flow()
    await Promise.all(replicas.map(replica => replica.stop()))
    await relay?.close()
    await upstream?.close()
    if (stores !== undefined) await services.drop(stores)
  })

  it('responds from memory for about 3 s and then with 503; when Postgres is back, it applies the changes that it missed', async () => {
    const [hearing, deaf] = replicas
    if (hearing === undefined || deaf === undefined) return
    const user = await newUser(hearing)
    const ask = () => get(deaf, '/any/x', { token: user.access })
    for (const replica of replicas) await remembers(replica, user)
    relay.stall()
    const stalled = performance.now()
    // The response comes from memory, because Postgres does not respond now.
    expect((await ask()).status).toBe(200)
    await hearing.sql('update users set is_active = 0 where id = $1', [user.id])
    const committed = performance.now()
    for (;;) {
      const sent = performance.now()
      const { status } = await ask()
      if (status !== 200) {
        expect(status).toBe(503)
        break
      }
      expect(sent - committed).toBeLessThan(5_000)
      await sleep(20)
    }
    expect(performance.now() - stalled).toBeGreaterThan(2_000)
    relay.flow()
    const seen = new Set<number>()
    const noted = async () => {
      const { status } = await ask()
      seen.add(status)
      return status
    }
    await expect.poll(noted, { timeout: 5_000, interval: 5 }).toBe(401)
    expect(seen).not.toContain(200)
    await hearing.sql('update users set is_active = 1 where id = $1', [user.id])
    await expect.poll(async () => (await ask()).status).toBe(200)
    await remembers(deaf, user)
  })
})
