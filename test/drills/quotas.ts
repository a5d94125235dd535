// On two replicas, users spend the uses of quotas at random, and the quotas change at random. Meanwhile, stores and
// replicas fail. The second part of the drill covers the time around midnight.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import pg from 'pg'
import { type Invariant, invariants } from '../support/quota-model/judge.ts'
import { type Rules, randomRules, yamlOf } from '../support/quota-model/rules.ts'
import { type Fault, type QuotaStage, type Report, runQuotaModel } from '../support/quota-model/run.ts'
import { startUseService } from '../support/quota-model/sender.ts'
import { startOwnPostgres, startOwnRedis } from '../support/stores.ts'
import { quotaMidnights } from './quota-midnights.ts'
import { replaceFile } from './reload.ts'
import { adminToken, openStage, type Replica, type ReplicaStage } from './replicas.ts'
import { randomBelow, seed, setting } from './settings.ts'
import { createUsers } from './users.ts'
import type { Watch } from './watch.ts'

const steps = setting('QUOTA_STEPS', 10_000, 1_000)
/** The number of times that each fault happens. */
const faultRounds = setting('QUOTA_FAULTS', 4, 1)
const userCount = 7

export async function quotas(watch: Watch): Promise<void> {
  await underFaults(watch)
  await quotaMidnights(watch)
}

async function underFaults(watch: Watch): Promise<void> {
  const [postgres, redis, service] = [
    await startOwnPostgres(),
    await startOwnRedis(),
    await startUseService(),
  ]
  const stage = await openStage({ postgres: postgres.url, redis: redis.url })
  const raw = new Redis(redis.url, { lazyConnect: true })
  raw.on('error', () => {})
  try {
    await stage.migrate()
    const { keys, tokens } = await createUsers(stage, 100, 'free')
    let yaml = yamlOf(randomRules(0, randomBelow), service.url)
    const start = () => stage.start({ settings: `auth: { keys: [${JSON.stringify(keys)}] }`, routing: yaml })
    const running = [await start(), await start()]
    const replicas = running.map(addressesOf)
    const model: QuotaStage = {
      replicas,
      adminToken,
      service,
      users: tokens.slice(0, userCount).map((token, index) => ({ id: index + 1, token })),
      query: async (text, values) => (await stage.database.query(text, values as unknown[])).rows,
      async configure(rules) {
        const next = yamlOf(rules, service.url)
        replaceFile(stage.file, readFileSync(stage.file, 'utf8').replace(yaml, next))
        yaml = next
        for (const replica of running) await reload(replica, rules)
      },
      lockRecords: userId => lockRecords(stage, userId),
    }
    const faults: Fault[] = [
      {
        name: 'Redis killed',
        hasPostgres: true,
        async run() {
          await redis.kill()
          await sleep(500)
          await redis.restart()
        },
      },
      {
        name: 'Redis paused',
        hasPostgres: true,
        async run() {
          redis.pause()
          await sleep(1_000)
          redis.resume()
        },
      },
      { name: 'Redis wiped', hasPostgres: true, run: async () => void (await raw.flushall()) },
      {
        name: 'Postgres killed and restarted',
        hasPostgres: false,
        async run() {
          await postgres.kill()
          await sleep(500)
          await postgres.restart()
        },
      },
      {
        name: 'Postgres paused',
        hasPostgres: false,
        async run() {
          postgres.pause()
          await sleep(2_000)
          postgres.resume()
        },
      },
      {
        name: 'the connections that receive changes ended',
        hasPostgres: true,
        async run() {
          await stage.database.query(
            "select pg_terminate_backend(pid) from pg_stat_activity where lower(query) like 'listen%' and pid <> pg_backend_pid()",
          )
        },
      },
      {
        name: 'replica killed',
        hasPostgres: true,
        async run() {
          const index = randomBelow(running.length)
          const { pid = 0 } = running[index] ?? {}
          process.kill(pid, 'SIGKILL')
          const next = await start()
          running[index] = next
          replicas[index] = addressesOf(next)
        },
      },
    ]
    const inTurn = Array.from({ length: faultRounds }, () => faults).flat()
    tell(watch, await runQuotaModel(model, randomBelow, steps, inTurn), inTurn.length)
  } finally {
    raw.disconnect()
    await stage.stop().catch(error => watch.say(String(error)))
    service.close()
  }
}

function addressesOf({ port, admin }: Replica): QuotaStage['replicas'][number] {
  return { url: `http://127.0.0.1:${port}`, admin: `http://127.0.0.1:${admin}` }
}

async function reload({ pid, port }: Replica, { number }: Rules): Promise<void> {
  process.kill(pid, 'SIGHUP')
  const begun = performance.now()
  while ((await fetch(`http://127.0.0.1:${port}/rules/${number}`)).status === 404) {
    if (performance.now() - begun > 30_000) throw new Error('a reload did not succeed within 30 s')
    await sleep(5)
  }
}

async function lockRecords({ url }: ReplicaStage, userId: number): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  await client.query('select from quota_usage where user_id = $1 for update', [userId])
  return () => client.end()
}

function tell({ expect, say }: Watch, report: Report, faults: number): void {
  const { problems, history, steps: done, statuses, settledMs } = report
  const all = `${done} steps, ${faults} failures; ${[...statuses].map(([status, count]) => `${status}: ${count}`).join(', ')}`
  for (const name of Object.keys(invariants) as Invariant[]) {
    const found = problems.filter(({ invariant }) => invariant === name)
    expect(
      invariants[name],
      found.length === 0,
      found.length === 0 ? all : `${found.length} times: ${found[0]?.text}`,
    )
  }
  expect(`all ${steps} steps run`, done >= steps, `${done}`)
  if (problems.length > 0) say(`with --seed ${seed}:\n${history.join('\n')}`)
  const sorted = settledMs.toSorted((a, b) => a - b)
  const at = (share: number) => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(0)
  say(`changes reach both replicas in ${at(0.5)} ms (median), ${at(0.99)} ms (p99), ${at(1)} ms (slowest)`)
}
