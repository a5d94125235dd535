// 100,000 users send requests at once to a gateway with empty caches. The gateway looks up each user once, and its
// memory stays bounded.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { peakMemory } from '../support/process-stat.ts'
import { startCountingRelay } from './relay.ts'
import { openStage, type ReplicaStage } from './replicas.ts'
import { rush } from './rush.ts'
import { serviceAt, startUpstream } from './stage.ts'
import { createUsers, type Users } from './users.ts'
import type { Watch } from './watch.ts'

const users = 100_000
/** The number of requests that one user sends at the same time. */
const together = 3
const few = 1_000
/** The heap limit in MiB for the run with small caches. For the default caches, this limit would be too low. */
const heap = 96

interface Playing extends Users {
  readonly watch: Watch
  readonly stage: ReplicaStage
  /** The port of the upstream. */
  readonly upstream: number
}

export async function coldStart(watch: Watch): Promise<void> {
  const { say, expect } = watch
  const upstream = await startUpstream()
  const stage = await openStage()
  try {
    await stage.migrate()
    const { keys, tokens } = await createUsers(stage, users, 'pro')
    say(`${users} users, each with a token of ${tokens[0]?.length} bytes`)
    const playing = { watch, stage, upstream: upstream.port, tokens, keys }
    const usual = await askForAll(playing, 'default caches')
    // While the heap has free space, Node delays the garbage collection, and the memory grows. A low heap limit makes
    // this run show how little memory the gateway needs.
    const small = await askForAll(
      playing,
      `caches of ${few} users`,
      { remember: { users: few, tokens: few } },
      { NODE_OPTIONS: `--max-old-space-size=${heap}` },
    )
    expect('default caches: each user is looked up once', usual.lookUps === users, `${usual.lookUps} lookups`)
    expect(
      'default caches: a cached user is not looked up again',
      usual.again === 0,
      `${usual.again} lookups for ${usual.asked} more requests`,
    )
    expect('default caches: memory stays below 400 MiB', usual.peak < 400, `${usual.peak.toFixed(0)} MiB`)
    expect(
      `caches of ${few} users: memory stays below 250 MiB`,
      small.peak < 250,
      `${small.peak.toFixed(0)} MiB`,
    )
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

interface Outcome {
  readonly lookUps: number
  /**
   * `asked` is the number of requests from users who are already in the cache. `again` is the number of lookups that
   * these requests cause.
   */
  readonly again: number
  readonly asked: number
  /** The peak memory in MiB. */
  readonly peak: number
}

/** @param auth additional members of the section `auth` */
async function askForAll(
  { watch: { say, expect }, stage, upstream, tokens, keys }: Playing,
  title: string,
  auth: object = {},
  env: Record<string, string> = {},
): Promise<Outcome> {
  const relay = await startCountingRelay(stage.url)
  try {
    const gateway = await stage.start({
      through: relay.url,
      settings: `auth: ${JSON.stringify({ keys: [keys], ...auth })}`,
      routing: `${serviceAt(upstream)}
routes:
  - { path: /public/small, upstream: service, plans: [pro] }`,
      env,
    })
    // The gateway caches nothing before the first heartbeat of its change feed.
    await sleep(1_000)
    const before = peakMemory(gateway.pids)
    const server = watchServer(stage.database)
    const { answered, failures, seconds, ownStall } = await rush(gateway.port, tokens, together)
    const longest = await server.stop()
    const { lookUps, mostOfOne } = await relay.counts()
    say(
      `${title}: ${answered} responses in ${seconds.toFixed(1)} s, ${together} concurrent requests per user`,
    )
    // On a busy machine, other processes may cause delays. These figures help to recognize such delays.
    say(
      `${title}: the drill process was blocked for at most ${ownStall.toFixed(0)} ms; the drill's own lookups took at most ${longest.toFixed(0)} ms`,
    )
    const failed = `${failures.length} of ${users * together} ${failures.slice(0, 9)}`
    expect(`${title}: no request fails`, failures.length === 0 && answered === users * together, failed)
    expect(
      `${title}: at most one lookup per user runs at a time`,
      mostOfOne === 1,
      `at most ${mostOfOne}, ${lookUps} in total`,
    )
    const everyTenth = tokens.filter((_, at) => at % 10 === 0)
    const again = await rush(gateway.port, everyTenth, 1)
    const later = await relay.counts()
    const peak = peakMemory(gateway.pids)
    say(`${title}: memory ${before.toFixed(0)} MiB before, ${peak.toFixed(0)} MiB at its peak`)
    await gateway.stop()
    return { lookUps, again: later.lookUps - lookUps, asked: again.answered, peak }
  } finally {
    await relay.stop()
  }
}

/**
 * Looks up 50 users per second directly in Postgres.
 * @returns an object; its function `stop` resolves with the duration of the slowest lookup in milliseconds
 */
function watchServer(database: Pool): { stop(): Promise<number> } {
  let longest = 0
  let isDone = false
  const watching = (async () => {
    for (let id = 1; !isDone; id = ((id + 996) % users) + 1) {
      const begun = performance.now()
      await database.query('select email from users where id = $1', [id])
      longest = Math.max(longest, performance.now() - begun)
      await sleep(20)
    }
  })()
  return {
    async stop() {
      isDone = true
      await watching
      return longest
    },
  }
}
