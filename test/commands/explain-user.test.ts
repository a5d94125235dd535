// Tests `peage explain --user` with quotas, on the embedded database and through a running gateway.
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import type { Printed } from './peage.ts'
import { type Gateway, startOn, token } from './users-doors.ts'
import { folder, lentFolder, peage, writeConfiguration } from './users-setup.ts'

const plans = `plans:
  - { name: free, quotas: { exports: 9/month } }
  - { name: team, quotas: { exports: 99/day } }`
const routing = `upstreams: { a: { targets: ["http://127.0.0.1:9000"] } }
routes: [{ name: exports, path: /exports, upstream: a, quota: exports }]`

function suite(explain: (...words: string[]) => Promise<Printed>, open: () => Promise<Database>) {
  it('reads the stored uses for the period (day or month) of the quota, and shows plan_insufficient for an unconfigured plan', async () => {
    const database = await open()
    await database.query(
      `with created as (
         insert into users (email, password_hash, plan) values ('a@example.com', 'x', 'free') returning id)
       insert into quota_usage select id, 'exports', 'month', date_trunc('month', now() at time zone 'utc'), 9 from created`,
    )
    const outcomeOf = async () => {
      const { stdout, stderr } = await explain('GET', '/exports', '--user', 'a@example.com', '--json')
      expect(stderr).toBe('')
      const { request, guards } = JSON.parse(stdout)
      return [request.as, guards.find(({ outcome }: { outcome: string }) => outcome === 'refuse')?.error]
    }
    expect(await outcomeOf()).toEqual(['free', 'quota_exceeded'])
    await database.query('update quota_usage set used = 8')
    expect(await outcomeOf()).toEqual(['free', undefined])
    await database.query("update users set plan = 'team'")
    await database.query('update quota_usage set used = 1000')
    expect(await outcomeOf()).toEqual(['team', undefined])
    await database.query("update users set plan = 'old-plan'")
    expect(await outcomeOf()).toEqual(['old-plan', 'plan_insufficient'])
  })
}

describe('peage explain --user (embedded)', () => {
  const cwd = folder()
  writeConfiguration(cwd, { admin: plans, routing })
  const open = lentFolder(cwd)
  suite(
    (...words) => peage(cwd, ['explain', ...words], '', undefined, open),
    () => open(join(cwd, 'data')),
  )
})

describe('peage explain --user (through a running gateway)', () => {
  const cwd = folder()
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startOn(cwd, `admin: { listen: '127.0.0.1:0', token: ${token} }\n${plans}`)
    const { host } = new URL(String(gateway.server.adminAddress))
    writeConfiguration(cwd, { admin: `admin: { listen: '${host}', token: ${token} }\n${plans}`, routing })
  })
  afterAll(() => gateway?.server.stop())
  suite(
    (...words) => peage(cwd, ['explain', ...words]),
    async () => gateway.backing.database,
  )
})
