// Redis is killed, paused, wiped, restored, read-only or moved while free and paying users send requests to two
// replicas.
import { setTimeout as sleep } from 'node:timers/promises'
import { scrape } from '../support/scrape.ts'
import { type CountingService, startCountingService } from './counting-service.ts'
import { startCluster, startNode, startWatched } from './redis-nodes.ts'
import { limit, startWork, type Work, type WorkAnswer } from './redis-work.ts'
import { startRelay } from './relay.ts'
import { openStage, type RedisAddress, type Replica, type ReplicaStage } from './replicas.ts'
import { setting } from './settings.ts'
import { createUsers } from './users.ts'
import { countsOf, type Watch } from './watch.ts'

const outageMs = setting('REDIS_SECONDS', 5, 2) * 1_000
/**
 * The times in milliseconds. A free user must get a response within `soon`. After a fault, Redis must count uses again
 * within `recovery`. After that, Redis must count all uses for at least the time `steady`.
 */
const soon = 1_000
const recovery = 5_000
const steady = 1_000
/**
 * The number of free users for all faults of one set-up together. Each fault needs new users, because the uses of a
 * user can be spent only once.
 */
const freeUsers = setting('REDIS_USERS', 6_000, 3_000)
const payingUsers = 100

export async function redis(watch: Watch): Promise<void> {
  for (const setUp of [alone, behindAnAddress, watchedBySentinels, asCluster]) {
    const { redis, faults, stop } = await setUp()
    try {
      await underFaults(watch, redis, faults)
    } finally {
      await stop()
    }
  }
  watch.say(`each outage lasts ${outageMs / 1_000} s, or until the failover`)
}

/** Maps the name of a fault to the function that causes it. The function resolves when Redis works again. */
type Faults = Readonly<Record<string, () => Promise<unknown>>>

interface SetUp {
  readonly redis: RedisAddress
  readonly faults: Faults
  stop(): Promise<void>
}

async function alone(): Promise<SetUp> {
  const [node, other] = [await startNode(), await startNode()]
  return {
    redis: `redis://${node.host}`,
    faults: {
      async 'killed with SIGKILL, empty after the restart'() {
        await node.kill()
        await sleep(outageMs)
        await node.restart()
      },
      async 'paused (SIGSTOP)'() {
        node.pause()
        await sleep(outageMs)
        node.resume()
      },
      async 'wiped (FLUSHALL), ten times'() {
        for (let time = 0; time < 10; time += 1) {
          await node.raw.flushall()
          await sleep(outageMs / 10)
        }
      },
      async 'killed, with older data after the restart'() {
        await node.raw.save()
        await sleep(2_000)
        await node.kill()
        await sleep(outageMs)
        await node.restart()
      },
      async 'read-only as a replica of another server'() {
        await node.follow(other)
        await sleep(outageMs)
        await node.lead()
      },
    },
    async stop() {
      await other.stop()
      await node.stop()
    },
  }
}

/**
 * A failover in which the replica takes over the address. New connections reach the promoted replica, but open
 * connections stay at the old server.
 */
async function behindAnAddress(): Promise<SetUp> {
  const [first, second] = [await startNode(), await startNode()]
  await second.follow(first)
  const relay = await startRelay('moving', `redis://${first.host}`)
  return {
    redis: relay.url,
    faults: {
      async 'the address moves to a promoted replica, and the old server becomes its replica'() {
        await second.lead()
        await first.follow(second)
        await sleep(outageMs)
        relay.child.send(second.port)
      },
      async 'killed with SIGKILL, and the address moves to a promoted replica'() {
        await second.kill()
        await first.lead()
        await sleep(outageMs)
        relay.child.send(first.port)
      },
    },
    async stop() {
      await relay.stop()
      await first.stop()
      await second.stop()
    },
  }
}

async function watchedBySentinels(): Promise<SetUp> {
  const watched = await startWatched()
  return {
    redis: watched.redis,
    faults: {
      async 'Sentinel: the primary is killed with SIGKILL'() {
        const primary = await watched.named()
        await primary.kill()
        await watched.failedOver(primary)
        // The Sentinels make the restarted node a replica.
        await primary.restart()
      },
      async 'Sentinel: the primary is paused (SIGSTOP)'() {
        const primary = await watched.named()
        primary.pause()
        await watched.failedOver(primary)
        setTimeout(() => primary.resume(), 2_000)
      },
    },
    stop: watched.stop,
  }
}

async function asCluster(): Promise<SetUp> {
  const cluster = await startCluster()
  return {
    redis: cluster.redis,
    faults: {
      async 'Cluster: a node with a replica is killed'() {
        await cluster.first.kill()
        await cluster.replaced()
        await cluster.whole()
        await cluster.first.restart()
      },
      async 'Cluster: a node without a replica is killed, and is empty after the restart'() {
        await cluster.second.kill()
        await sleep(outageMs)
        await cluster.second.restart()
        await cluster.whole()
      },
    },
    stop: cluster.stop,
  }
}

async function underFaults({ say, expect }: Watch, redis: RedisAddress, faults: Faults): Promise<void> {
  const service = await startCountingService()
  const stage = await openStage({ redis })
  let work: Work | undefined
  try {
    await stage.migrate()
    const { keys, tokens } = await createUsers(stage, freeUsers + payingUsers, 'free')
    await stage.database.query("update users set plan = 'pro' where id > $1", [freeUsers])
    const start = () =>
      stage.start({
        settings: `auth: { keys: [${JSON.stringify(keys)}] }\nlimits: { free_daily: ${limit} }`,
        routing: `upstreams: { service: { targets: ['http://127.0.0.1:${service.port}'], connections_per_client: 128 } }
routes:
  - { path: /free/*, upstream: service, free_daily: true }
  - { path: /paying/*, upstream: service, plans: [pro], rate_limit: 1000000/1m }`,
      })
    const replicas = [await start(), await start()]
    work = startWork(replicas, { free: tokens.slice(0, freeUsers), paying: tokens.slice(freeUsers) })
    for (const [fault, play] of Object.entries(faults)) {
      await sleep(steady)
      await normalAgain(replicas)
      const before = slowestOf(work.take().filter(({ kind }) => kind === 'free'))
      await play()
      const normalMs = await normalAgain(replicas)
      await sleep(steady)
      judge(expect, fault, { normalMs, before, answers: work.take(), ...(await compare(stage, service)) })
      if (!work.isGoing()) throw new Error('All free users are spent. Set REDIS_USERS to a larger number.')
    }
    say(`the drill process was blocked for at most ${work.ownStall().toFixed(0)} ms`)
  } finally {
    await work?.stop()
    await stage.stop()
    service.close()
  }
}

interface Outcome {
  /** The milliseconds until Redis counted all uses again. Before that, Postgres counted uses instead of Redis. */
  readonly normalMs: number
  /** The milliseconds of the slowest response to a free user before the fault. */
  readonly before: number
  readonly answers: readonly WorkAnswer[]
  /** The number of users who got more uses than the limit. */
  readonly second: number
  /** The number of users with unrecorded uses. */
  readonly lost: number
}

function judge(
  expect: Watch['expect'],
  fault: string,
  { normalMs, before, answers, second, lost }: Outcome,
): void {
  const free = answers.filter(({ kind }) => kind === 'free')
  const paying = answers.filter(({ kind }) => kind === 'paying')
  expect(
    `${fault}: no user gets more uses than the limit`,
    second + lost === 0,
    `${second} users with too many, ${lost} with unrecorded uses`,
  )
  expect(
    `${fault}: no request of a paying user fails`,
    paying.length > 0 && paying.every(({ status }) => status === 200),
    counted(paying),
  )
  const slowest = slowestOf(free)
  expect(
    `${fault}: free users get a response within 1 s`,
    free.length > 0 && slowest < soon && free.every(({ status }) => status === 200 || status === 429),
    `at most ${slowest.toFixed(0)} ms, ${before.toFixed(0)} ms before the fault; ${counted(free)}`,
  )
  expect(
    `${fault}: Redis counts again within 5 s after its return`,
    normalMs < recovery,
    `${(normalMs / 1_000).toFixed(1)} s`,
  )
}

function slowestOf(answers: readonly WorkAnswer[]): number {
  return Math.max(0, ...answers.map(({ tookMs }) => tookMs))
}

function counted(answers: readonly WorkAnswer[]): string {
  return countsOf(answers.map(({ status }) => status))
}

/**
 * Waits until both replicas are ready. Then waits until Redis has counted all uses for the time `steady`.
 * @returns the milliseconds between the call and the last use that Redis did not count
 */
async function normalAgain(replicas: readonly Replica[]): Promise<number> {
  const begun = performance.now()
  let last = begun
  let known = await fallbacks(replicas)
  while (performance.now() - last < steady && performance.now() - begun < 4 * recovery) {
    await sleep(50)
    const now = await fallbacks(replicas)
    if (now !== known) last = performance.now()
    known = now
  }
  return last - begun
}

const fallbackCounter = 'peage_daily_usage_fallback_total'

/** Returns the number of uses that only Postgres counted, or NaN while a replica is not ready. */
async function fallbacks(replicas: readonly Replica[]): Promise<number> {
  const counts = replicas.map(async ({ admin }) => {
    const url = `http://127.0.0.1:${admin}`
    const { status } = (await (await fetch(`${url}/readyz`)).json()) as { status: string }
    const { page, sum } = await scrape(url)
    if (!page.includes(fallbackCounter)) throw new Error(`no ${fallbackCounter} at /metrics`)
    return status === 'ok' ? sum(fallbackCounter) : Number.NaN
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

/**
 * Compares the forwarded uses of each free user with the recorded uses. The gateway records a use before it forwards
 * the request. So there must never be fewer recorded uses than forwarded uses.
 */
async function compare(
  { database }: ReplicaStage,
  { seen }: CountingService,
): Promise<Pick<Outcome, 'second' | 'lost'>> {
  const forwarded = new Map(seen)
  const { rows } = await database.query<{ id: number; daily_usage: number }>(
    'select id::int, daily_usage from users where id <= $1',
    [freeUsers],
  )
  const given = rows.map(row => ({ ...row, forwarded: forwarded.get(String(row.id)) ?? 0 }))
  return {
    second: given.filter(one => one.forwarded > limit || one.daily_usage > limit).length,
    lost: given.filter(one => one.forwarded > one.daily_usage).length,
  }
}
