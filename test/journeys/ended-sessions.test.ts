// What an access token may no longer do whose session is ended at the same moment (CONTRACT §12): make what outlasts it.
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeWithPostgres } from '../support/services.ts'

describeWithPostgres('while sessions are being ended', () => {
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

  it.each([
    ['API token', 'api-token', 'select from api_tokens where user_id = $1 and revoked = 0'],
    ['webhook', 'webhook', 'select from webhooks where user_id = $1'],
  ])('no %s is made that they leave behind', async (_, path, made) => {
    const user = await newUser(gateway, 'pro')
    await other.query('begin')
    await other.query('update users set session_epoch = session_epoch + 1 where id = $1', [user.id])
    await other.query('update refresh_tokens set revoked = 1 where user_id = $1', [user.id])
    const body = { url: 'https://nobody.invalid/hook' }
    const answer = call(gateway.url, 'POST', `/api/v1/user/${path}`, { token: user.access, body })
    await expect
      .poll(async () => {
        const { rowCount } = await other.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
        return rowCount
      })
      .toBe(1)
    await other.query('commit')
    expectRefusal(await answer, 401, 'token_invalid', 'Token invalide ou expiré')
    expect(await gateway.sql(made, [user.id])).toEqual([])
  })
})
