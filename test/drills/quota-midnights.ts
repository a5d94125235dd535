// Users spend the uses of their quotas before and after the end of a month. The drill uses libfaketime to set the clock
// of Postgres to the last seconds of a month.
import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSender, startUseService } from '../support/quota-model/sender.ts'
import { startOwnPostgres, startOwnRedis } from '../support/stores.ts'
import { createMovedClock } from './moved-clock.ts'
import { openStage } from './replicas.ts'
import { randomBelow, setting } from './settings.ts'
import { createUsers } from './users.ts'
import type { Watch } from './watch.ts'

const midnights = setting('QUOTA_MIDNIGHTS', 10, 1)
const users = 20
const clients = 8
/** The maximum number of uses of each user, per day and per month. */
const limits = { '/daily': 5, '/monthly': 7 } as const
type Path = keyof typeof limits
const day = 86_400_000
/** The time from the change of the clock to midnight. In this time, half of the users spend their uses. */
const spendingMs = 15_000
/** The number of milliseconds before midnight at which the load of all users starts. */
const earlyMs = 300
/** The number of milliseconds after midnight during which a refusal can still belong to the old period. */
const lateMs = 1_000

/** The time until every replica has noticed that the clock of Postgres was set forward. */
const visibleMs = 1_000

/** One quota of one user. */
interface Account {
  readonly path: Path
  readonly user: number
  /** Whether the user spends all uses of the quota before midnight. */
  isEarly: boolean
  passed: number
  isSpent: boolean
}

export async function quotaMidnights({ say, expect }: Watch): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'peage-drill-midnight-'))
  // Postgres runs as another system user. This user must be able to read the file with the time.
  chmodSync(folder, 0o755)
  const clock = createMovedClock(folder, 'postgres')
  const [postgres, redis, service] = [
    await startOwnPostgres({ folder, env: clock.env }),
    await startOwnRedis(),
    await startUseService(),
  ]
  const stage = await openStage({ postgres: postgres.url, redis: redis.url })
  try {
    await stage.migrate()
    const { keys, tokens } = await createUsers(stage, 100, 'free')
    const yaml = {
      settings: `auth: { keys: [${JSON.stringify(keys)}] }`,
      routing: `plans: [{ name: free, quotas: { daily: ${limits['/daily']}/day, monthly: ${limits['/monthly']}/month } }]
upstreams: { service: { targets: ['${service.url}'], connections_per_client: 1000 } }
routes:
  - { path: /daily, upstream: service, quota: daily }
  - { path: /monthly, upstream: service, quota: monthly }`,
    }
    const started = [await stage.start(yaml), await stage.start(yaml)]
    const ask = createSender({
      replicas: started.map(({ port }) => ({ url: `http://127.0.0.1:${port}` })),
      service,
    })
    let [ahead, passed, stored] = [0, 0, 0]
    const wrong: string[] = []
    const failed: number[] = []
    /**
     * Sends requests without a pause until all uses are spent, at most until `untilMs`.
     * @param fromMs a refusal marks the uses as spent only if its request was sent at or after this time
     */
    const spend = (accounts: readonly Account[], fromMs: number, untilMs: number) => {
      for (const account of accounts) account.isSpent = false
      const client = async () => {
        for (let turn = 0; performance.now() < untilMs && accounts.some(each => !each.isSpent); turn += 1) {
          const account = accounts[randomBelow(accounts.length)] as Account
          const sentAt = performance.now()
          const { status, policy, body } = await ask(turn % 2, account.path, tokens[account.user] ?? '')
          if (status === 200) account.passed += 1
          else if (status !== 429) failed.push(status)
          else if (Number(body.used) < (policy?.limit ?? 0)) ahead += 1
          else if (sentAt >= fromMs) account.isSpent = true
        }
      }
      return Promise.all(Array.from({ length: clients }, client))
    }
    for (let round = 0; round < midnights; round += 1) {
      // Each jump of the clock passes the end of a month, so all periods of the previous round end. After that, the
      // replicas must not refuse requests because of cached counts of the old periods.
      clock.set(daysToMonthEnd(2 * round), day - spendingMs)
      const midnight = performance.now() + spendingMs
      await sleep(visibleMs)
      const accounts = Array.from({ length: users }, (_, user) =>
        (Object.keys(limits) as Path[]).map(path => ({
          path,
          user,
          isEarly: user % 2 === 0,
          passed: 0,
          isSpent: false,
        })),
      ).flat()
      await spend(
        accounts.filter(({ user }) => user % 2 === 0),
        0,
        midnight - 2 * earlyMs,
      )
      for (const account of accounts) account.isEarly = account.isSpent
      const early = accounts.filter(({ isEarly }) => isEarly)
      for (const { path, user, passed: uses } of early)
        if (uses !== limits[path]) wrong.push(`${uses} ${path} of user ${user} before midnight`)
      await sleep(midnight - earlyMs - performance.now())
      await spend(accounts, midnight + lateMs, midnight + 60_000)
      for (const { path, user, isEarly, passed: uses } of accounts) {
        passed += uses
        if (uses > 2 * limits[path] || uses < (isEarly ? 2 : 1) * limits[path])
          wrong.push(`${uses} ${path} of user ${user} in both periods, ${isEarly ? '' : 'not '}spent before`)
      }
      const { rows } = await stage.database.query(
        `select from quota_usage where period_start = date_trunc(period, now() at time zone 'utc')
           and used = case period when 'day' then ${limits['/daily']} else ${limits['/monthly']} end`,
      )
      stored += rows.length
    }
    const all = midnights * users * Object.keys(limits).length
    expect(
      `before and after each of ${midnights} midnights at the end of a month, each user gets exactly the allowance`,
      wrong.length === 0 && stored === all && failed.length === 0,
      `wrong for ${wrong.length} of ${all} quotas of users ${wrong.slice(0, 5)}, ${stored} records are full; ${passed} uses, ${failed.length} failures ${[...new Set(failed)]}`,
    )
    expect('no use is refused although the record has room', ahead === 0, `${ahead} times`)
    say('libfaketime moves only the clock of Postgres, not of the gateways')
  } finally {
    await stage.stop()
    service.close()
  }
}

/** Returns the days from today to the last day of a month. @param months 0 for the current month */
function daysToMonthEnd(months: number): number {
  const now = new Date()
  const today = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate())
  return (Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months + 1, 0) - today) / day
}
