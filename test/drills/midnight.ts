// Under load, every user gets exactly one use per UTC day. Meanwhile, the clocks of the replicas differ. The drill also
// sets these clocks a day back, and then forward again.
import { setTimeout as sleep } from 'node:timers/promises'
import { startOwnPostgres, startOwnRedis } from '../support/stores.ts'
import { type CountingService, startCountingService } from './counting-service.ts'
import { createMovedClock } from './moved-clock.ts'
import { openStage, type Replica, type Setting } from './replicas.ts'
import { random, setting } from './settings.ts'
import { takeUse } from './take-uses.ts'
import { createUsers } from './users.ts'
import { countsOf, type Watch } from './watch.ts'

const midnights = setting('MIDNIGHTS', 20, 3)
const users = 100
const clients = 24
const noon = 43_200_000
const midnight = 86_400_000
/** After each change of the clocks, the load continues for this number of milliseconds. */
const lookMs = 2_000
/** The clocks of two replicas differ by at most this number of milliseconds. */
const apart = 1_500

export async function midnightAndClocks({ say, expect }: Watch): Promise<void> {
  const service = await startCountingService()
  const [postgres, redis] = [await startOwnPostgres(), await startOwnRedis()]
  const stage = await openStage({ postgres: postgres.url, redis: redis.url })
  try {
    await stage.migrate()
    const { keys, tokens } = await createUsers(stage, users, 'free', midnights + 3)
    const clocks = [createMovedClock(stage.folder, 'one'), createMovedClock(stage.folder, 'two')]

    const setAll = (days: number, ms = noon) => {
      for (const clock of clocks) clock.set(days, ms)
    }
    setAll(0)
    const replicas: Replica[] = []
    for (const { env } of clocks) replicas.push(await stage.start({ ...routing(keys, service), env }))
    const load = startLoad(replicas, tokens)
    const taken = { day: 0, midnight: 0, back: 0, forth: 0 }
    /** Counts the users for whom the number of uses since the last call is not `due`. */
    const look = async (when: keyof typeof taken, due: number) => {
      if (due > 0) await untilAllUsed(service)
      await sleep(lookMs)
      for (let id = 1; id <= users; id += 1) if ((service.seen.get(String(id)) ?? 0) !== due) taken[when] += 1
      service.seen.clear()
    }
    await look('day', 1)
    for (let today = 0; today < midnights; today += 1) {
      const early = 500 + random() * 1_000
      const late = early + (random() * 2 - 1) * apart
      clocks[0]?.set(today, midnight - early)
      clocks[1]?.set(today, midnight - late)
      await sleep(Math.max(early, late))
      await look('midnight', 1)
      setAll(today)
      await look('back', 0)
      setAll(today + 1)
      await look('forth', 0)
    }
    const statuses = await load.stop()
    expect(
      `users get one use per day, over ${midnights} midnights on two replicas with clocks up to ${apart / 1_000} s apart`,
      taken.day + taken.midnight === 0,
      `wrong for ${taken.day + taken.midnight} of ${users * (midnights + 1)} users and days`,
    )
    expect(
      `users get no use when the clocks are set a day back, ${midnights} times`,
      taken.back === 0,
      `wrong for ${taken.back} of ${users * midnights} users and days`,
    )
    expect(
      'users get no use when the clocks are set forward again',
      taken.forth === 0,
      `wrong for ${taken.forth} of ${users * midnights} users and days`,
    )
    const others = statuses.filter(status => status !== 200 && status !== 429)
    expect(
      'all responses are 200 or 429',
      others.length === 0 && statuses.includes(200) && statuses.includes(429),
      countsOf(statuses),
    )
    say('libfaketime moves only the clocks of the gateways, not of Postgres and Redis')
  } finally {
    await stage.stop()
    service.close()
  }
}

function routing(keys: string, { port }: CountingService): Setting {
  return {
    settings: `auth: { keys: [${JSON.stringify(keys)}] }`,
    routing: `upstreams: { service: { targets: ['http://127.0.0.1:${port}'], connections_per_client: 128 } }
routes:
  - { path: /daily/*, upstream: service, free_daily: true }`,
  }
}

/** Waits until the service has received a use of every user, at most for 20 s. */
async function untilAllUsed({ seen }: CountingService): Promise<void> {
  for (let waitedMs = 0; seen.size < users && waitedMs < 20_000; waitedMs += 20) await sleep(20)
}

/** Starts to send requests of random users to random replicas, without pauses. */
function startLoad(
  replicas: readonly Replica[],
  tokens: readonly string[],
): {
  /** Returns the status codes of all responses. */
  stop(): Promise<readonly number[]>
} {
  const statuses: number[] = []
  const anyOf = <T>(all: readonly T[]) => all[Math.floor(random() * all.length)]
  let isOver = false
  const client = async () => {
    while (!isOver) {
      statuses.push(await takeUse(anyOf(replicas)?.port ?? 0, anyOf(tokens) ?? ''))
    }
  }
  const done = Promise.all(Array.from({ length: clients }, client))
  return {
    async stop() {
      isOver = true
      await done
      return statuses
    },
  }
}
