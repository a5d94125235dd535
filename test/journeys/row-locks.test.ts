// One user's row lock: the calls that wait for it hold one connection of the pool, for clients and operators together.
import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { call, newUser, type TestUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'

describeWithServices('a user whose row another transaction has locked', () => {
  let stores: Stores
  let gateway: TestGateway
  let holder: Client
  let user: TestUser
  beforeAll(async () => {
    stores = await services.open()
    gateway = await startGateway('upstreams: {}\nroutes: []\n', stores)
    holder = new Client({ connectionString: stores.postgres })
    await holder.connect()
    user = await newUser(gateway, 'pro')
  })
  afterAll(async () => {
    await holder.end()
    await gateway.stop()
    await services.drop(stores)
  })

  const asClient = (method: string, path: string, body?: object) =>
    call(gateway.url, method, `/api/v1/user/${path}`, { token: user.access, ...(body && { body }) })
  const asOperator = (path: string) =>
    call(gateway.admin, 'DELETE', `/admin/v1/users/${user.id}/${path}`, { token: gateway.adminToken })
  const ofAll = () => [
    asClient('POST', 'api-token'),
    asClient('POST', 'webhook', { url: 'https://8.8.8.8/hook' }),
    asClient('DELETE', 'api-token'),
    asClient('DELETE', 'webhook'),
    asOperator('api-token'),
    asOperator('webhook'),
  ]

  async function waitingConnections(): Promise<number> {
    const { rows } = await holder.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows[0]?.count ?? 0
  }

  it('holds one connection, for clients, operators and a reloaded configuration together', async () => {
    await holder.query('begin')
    await holder.query('select from users where id = $1 for update', [user.id])
    const answers = ofAll()
    await expect.poll(waitingConnections).toBe(1)
    await writeFile(
      gateway.file,
      (await readFile(gateway.file, 'utf8')).replace('free_daily: 1', 'free_daily: 2'),
    )
    await gateway.reload()
    expect(gateway.log.join('')).toContain('the configuration is reloaded')
    answers.push(...ofAll())
    // Long enough for a second call to reach the lock.
    await sleep(300)
    expect(await waitingConnections()).toBe(1)
    await holder.query('commit')
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.every(status => status === 200 || status === 201 || status === 204)).toBe(true)
  })
})
