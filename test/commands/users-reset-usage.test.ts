// Tests `peage users reset-usage` with quotas, on the embedded database and through a running gateway.
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import type { Printed } from './peage.ts'
import { type Gateway, startOn, token } from './users-doors.ts'
import { folder, lentFolder, peage, writeConfiguration } from './users-setup.ts'

const plans = `plans:
  - { name: free, quotas: { exports: 9/month } }
  - { name: pro, quotas: { exports: 99/day, reports: 5/day } }`

function suite(
  users: (...words: string[]) => Promise<Printed>,
  open: () => Promise<Database>,
  operator: string,
) {
  let database: Database
  const stored = () =>
    database.query(
      `select daily_usage, (select string_agg(quota || ' ' || period, ', ' order by quota, period)
                              from quota_usage where user_id = id) as quotas from users`,
    )

  it('resets one quota, free_daily or everything, and the audit log contains what was reset', async () => {
    database = await open()
    await database.query("insert into users (email, password_hash) values ('a@example.com', 'x')")
    const fill = () =>
      database.query(
        `with used as (update users set daily_usage = 3, last_usage_date = now() returning id)
         insert into quota_usage select id, quota, period, now(), 4 from used, unnest(
           array['exports', 'exports', 'reports'], array['day', 'month', 'day']) as given (quota, period)
         on conflict do nothing`,
      )
    const who = 'user 1 (a@example.com)'
    await fill()
    const all = [{ daily_usage: 3, quotas: 'exports day, exports month, reports day' }]
    for (const quota of ['unknown', '', 'constructor']) {
      expect(await users('reset-usage', '1', '--quota', quota)).toEqual({
        exit: 2,
        stdout: '',
        stderr: `error: no plan has the quota ${quota}. Use one of: free_daily, exports, reports.\n`,
      })
    }
    expect(await stored()).toEqual(all)
    for (const [words, sentence, left] of [
      [
        ['--quota', 'exports'],
        `the quota exports of ${who} was reset`,
        { daily_usage: 3, quotas: 'reports day' },
      ],
      [
        ['--quota', 'free_daily'],
        `the daily usage of ${who} was reset`,
        { daily_usage: 0, quotas: 'exports day, exports month, reports day' },
      ],
      [[], `the daily usage and all quotas of ${who} were reset`, { daily_usage: 0, quotas: null }],
    ] as const) {
      await fill()
      expect(await users('reset-usage', 'a@example.com', ...words)).toEqual({
        exit: 0,
        stdout: `${sentence}\n`,
        stderr: '',
      })
      expect(await stored()).toEqual([left])
    }
    expect(
      await database.query('select operator, changes from admin_audit where status = 200 order by id'),
    ).toEqual([
      { operator, changes: { quota: 'exports' } },
      { operator, changes: { quota: 'free_daily' } },
      { operator, changes: {} },
    ])
  })
}

describe('peage users reset-usage (embedded)', () => {
  const cwd = folder()
  writeConfiguration(cwd, { admin: plans })
  const open = lentFolder(cwd)
  suite(
    (...words) => peage(cwd, ['users', ...words], '', undefined, open),
    () => open(join(cwd, 'data')),
    'cli',
  )
})

describe('peage users reset-usage (through a running gateway)', () => {
  const cwd = folder()
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startOn(cwd, `admin: { listen: '127.0.0.1:0', token: ${token} }\n${plans}`)
    const { host } = new URL(String(gateway.server.adminAddress))
    writeConfiguration(cwd, { admin: `admin: { listen: '${host}', token: ${token} }\n${plans}` })
  })
  afterAll(() => gateway?.server.stop())
  suite(
    (...words) => peage(cwd, ['users', ...words]),
    async () => gateway.backing.database,
    'token',
  )
})
