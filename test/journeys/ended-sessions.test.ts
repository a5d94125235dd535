// What a credential may no longer do that is ended at the same moment (CONTRACT §12): make what outlasts it.
import { request as httpRequest } from 'node:http'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { call, giveKey, newUser } from '../support/client.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeWithServices } from '../support/services.ts'

describeWithServices('while sessions and API tokens are being ended', () => {
  let postgres: string
  let gateway: TestGateway
  /** Another replica, in the midst of it. */
  let other: Client

  beforeAll(async () => {
    postgres = await createPostgresDatabase()
    gateway = await startGateway('upstreams: {}\nroutes: []\n', { postgres, redis: '' })
    other = new Client({ connectionString: postgres })
    await other.connect()
  })
  afterAll(async () => {
    await other?.end()
    await gateway?.stop()
    await dropPostgresDatabase(postgres)
  })

  afterEach(() => other.query('rollback'))

  const makes = [
    ['API token', 'api-token', 'select from api_tokens where user_id = $1 and revoked = 0'],
    ['webhook', 'webhook', 'select from webhooks where user_id = $1'],
  ] as const

  it.each(
    makes.flatMap(([what, ...how]) => [
      [what, 'an access token', ...how] as const,
      [what, 'an API token', ...how] as const,
    ]),
  )('no %s is made by %s that they leave behind', async (_, by, path, made) => {
    const user = await newUser(gateway, 'pro')
    const key = `peage_of_${user.id}`
    if (by === 'an API token') await giveKey(gateway, user, key)
    await other.query('begin')
    await other.query('update users set session_epoch = session_epoch + 1 where id = $1', [user.id])
    await other.query('update refresh_tokens set revoked = 1 where user_id = $1', [user.id])
    await other.query('update api_tokens set revoked = 1 where user_id = $1', [user.id])
    const credential = by === 'an API token' ? { headers: { 'x-api-key': key } } : { token: user.access }
    // An address, since a look-up of a name would take its time first; nothing is sent there.
    const body = { url: 'https://1.1.1.1/hook' }
    const answer = call(gateway.url, 'POST', `/api/v1/user/${path}`, { ...credential, body })
    await expect
      .poll(
        // On another connection: within a transaction the view stays as it was first seen.
        () =>
          gateway.sql(
            `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
                and query like '%for no key update'`,
          ),
        { timeout: 10_000 },
      )
      .toHaveLength(1)
    await other.query('commit')
    expectRefusal(await answer, 401, 'token_invalid', 'Token invalide ou expiré')
    expect(await gateway.sql(made, [user.id])).toEqual([])
  })

  it.each(makes)(
    'no %s is made by a request whose body comes after its API token was revoked',
    async (_, path, made) => {
      const user = await newUser(gateway, 'pro')
      const key = `peage_of_${user.id}`
      await giveKey(gateway, user, key)
      const body = '{"url":"https://1.1.1.1/hook"}'
      const answered = new Promise<number>((resolve, reject) => {
        const request = httpRequest(`${gateway.url}/api/v1/user/${path}`, {
          method: 'POST',
          headers: { 'x-api-key': key, 'content-length': body.length, expect: '100-continue' },
        })
        // The gateway asks for the body once the guards have let the request pass.
        request.on('continue', async () => {
          await call(gateway.url, 'DELETE', '/api/v1/user/api-token', { token: user.access })
          request.end(body)
        })
        request.on('response', response => resolve(response.resume().statusCode ?? 0))
        request.on('error', reject)
        request.flushHeaders()
      })
      expect(await answered).toBe(401)
      expect(await gateway.sql(made, [user.id])).toEqual([])
    },
  )
})
