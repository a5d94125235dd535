// Two gateways on the same Postgres and Redis serve one user as one would.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { createPostgresDatabase } from '../support/databases.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { describeWithServices, emptyRedisUrl } from '../support/services.ts'
import { services } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

describeWithServices('two replicas', () => {
  let stores: Stores
  let upstream: Upstream
  let replicas: [TestGateway, TestGateway]
  beforeAll(async () => {
    stores = { postgres: await createPostgresDatabase(), redis: await emptyRedisUrl() }
    upstream = await startUpstream()
    // At once, on an empty database: both migrate, both make the first signing key, one of each stays.
    replicas = await Promise.all([
      startGateway(routes(upstream.url), stores),
      startGateway(routes(upstream.url), stores),
    ])
  })
  afterAll(async () => {
    await Promise.all((replicas ?? []).map(replica => replica.stop()))
    await upstream?.close()
    if (stores !== undefined) await services.drop(stores)
  })
  const either = (index: number) => (index % 2 === 0 ? replicas[0] : replicas[1])

  it('a token from one is good at the other, refresh included', async () => {
    const user = await newUser(replicas[0])
    expect((await call(replicas[1].url, 'GET', '/any/x', { token: user.access })).status).toBe(200)
    const refreshed = await call(replicas[1].url, 'POST', '/api/v1/auth/refresh', {
      body: { refresh_token: user.refresh },
    })
    expect(refreshed.status).toBe(200)
    const token = String(refreshed.body.access_token)
    expect((await call(replicas[0].url, 'GET', '/any/x', { token })).status).toBe(200)
    const jwks = await Promise.all(replicas.map(({ url }) => call(url, 'GET', '/.well-known/jwks.json')))
    expect(jwks[0]?.body).toEqual(jwks[1]?.body)
  })

  it('100 concurrent counted calls of a free user over both: exactly one passes, the record says 1', async () => {
    const user = await newUser(replicas[0])
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        call(either(index).url, 'GET', '/courses/1', { token: user.access }),
      ),
    )
    expect(answers.filter(answer => answer.status === 200)).toHaveLength(1)
    expect(answers.filter(answer => answer.status === 429)).toHaveLength(99)
    expect(await replicas[0].sql('select daily_usage from users where id = $1', [user.id])).toEqual([
      { daily_usage: 1 },
    ])
  })

  it('50 concurrent refreshes of one token over both: exactly one 200', async () => {
    const user = await newUser(replicas[0])
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        call(either(index).url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token: user.refresh } }),
      ),
    )
    expect(answers.filter(answer => answer.status === 200)).toHaveLength(1)
    expect(answers.filter(answer => answer.status === 401)).toHaveLength(49)
  })

  it('20 concurrent registrations of one email over both: one 201, nineteen 409', async () => {
    const body = { email: `both.${process.pid}@example.com`, password: 'correct horse battery' }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        call(either(index).url, 'POST', '/api/v1/auth/register', { body }),
      ),
    )
    expect(answers.map(answer => answer.status).sort()).toEqual([201, ...Array(19).fill(409)])
  })
})
