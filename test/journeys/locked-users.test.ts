// Tests requests of a user while another program locks the row of this user. If the program then revokes the credential
// of a request, this request creates nothing. All requests together block only one database connection.
import { request as httpRequest } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { call, giveKey, newUser, passwordHash } from '../support/client.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { statementsWaiting } from '../support/locks.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeWithServices } from '../support/services.ts'

describeWithServices('while another program locks a user', () => {
  let postgres: string
  let gateway: TestGateway
  /** The connection that holds the lock. It simulates a transaction of another replica. */
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

  const waiting = (statement?: string) => statementsWaiting(gateway.backing.database, statement)

  const makes = [
    ['API token', 'api-token', 'select from api_tokens where user_id = $1 and revoked = 0'],
    ['webhook', 'webhook', 'select from webhooks where user_id = $1'],
  ] as const

  it.each(
    makes.flatMap(([what, ...how]) => [
      [what, 'an access token', ...how] as const,
      [what, 'an API token', ...how] as const,
    ]),
  )('no %s is created with %s that the locking transaction revokes', async (_, by, path, made) => {
    const user = await newUser(gateway, 'pro')
    const key = `peage_of_${user.id}`
    if (by === 'an API token') await giveKey(gateway, user, key)
    await other.query('begin')
    await other.query('update users set session_epoch = session_epoch + 1 where id = $1', [user.id])
    await other.query('update refresh_tokens set revoked = 1 where user_id = $1', [user.id])
    await other.query('update api_tokens set revoked = 1 where user_id = $1', [user.id])
    const credential = by === 'an API token' ? { headers: { 'x-api-key': key } } : { token: user.access }
    // An IP address needs no DNS lookup. The gateway sends nothing to this address.
    const body = { url: 'https://1.1.1.1/hook' }
    const answer = call(gateway.url, 'POST', `/api/v1/user/${path}`, { ...credential, body })
    await expect.poll(() => waiting('%for no key update')).toHaveLength(1)
    await other.query('commit')
    expectRefusal(await answer, 401, 'token_invalid', 'Token invalide ou expiré')
    expect(await gateway.sql(made, [user.id])).toEqual([])
  })

  it.each(makes)(
    'no %s is created if the API token is revoked before the request body arrives',
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
        // The gateway sends 100 Continue after the guards have admitted the request.
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

  it('the login of a user with a weak hash waits for the lock, and then replaces the hash', async () => {
    const { id, email, password } = await newUser(gateway)
    await gateway.sql('update users set password_hash = $2 where id = $1', [id, passwordHash])
    await other.query('begin')
    // When the gateway delivers an event, it locks the row of the user in the same way.
    await other.query('select from users where id = $1 for share', [id])
    const answer = call(gateway.url, 'POST', '/api/v1/auth/login', { body: { email, password } })
    await expect.poll(() => waiting('update users set password_hash%')).toHaveLength(1)
    await other.query('commit')
    expect((await answer).status).toBe(200)
    const stored = await gateway.sql('select password_hash from users where id = $1', [id])
    expect(stored).toEqual([{ password_hash: expect.not.stringContaining(passwordHash) }])
  })

  it('a locked row blocks only one connection, even if many requests need the row before and after a reload', async () => {
    const user = await newUser(gateway, 'pro')
    const asClient = (method: string, path: string, body?: object) =>
      call(gateway.url, method, `/api/v1/user/${path}`, { token: user.access, body })
    const asOperator = (path: string) =>
      call(gateway.admin, 'DELETE', `/admin/v1/users/${user.id}/${path}`, { token: gateway.adminToken })
    const ofAll = () => [
      asClient('POST', 'api-token'),
      asClient('POST', 'webhook', { url: 'https://8.8.8.8/hook' }),
      asClient('DELETE', 'api-token'),
      asClient('DELETE', 'webhook'),
      asOperator('api-token'),
      asOperator('webhook'),
      asOperator('identities/unknown'),
    ]
    await other.query('begin')
    await other.query('select from users where id = $1 for update', [user.id])
    const answers = ofAll()
    await expect.poll(() => waiting()).toHaveLength(1)
    await gateway.configure(['free_daily: 1', 'free_daily: 2'])
    expect(gateway.log.join('')).toContain('configuration reloaded')
    answers.push(...ofAll())
    // During this wait, a second statement could start to wait for the row. The check below shows that none does.
    await sleep(300)
    expect(await waiting()).toHaveLength(1)
    await other.query('commit')
    for (const { status } of await Promise.all(answers)) expect([200, 201, 204, 404]).toContain(status)
  })
})
