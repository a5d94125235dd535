// 100,000 users come at once to a gateway that remembers none. Each is looked up once, and memory stays in its bounds.
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
/** Requests of one user at the same moment. */
const together = 3
const few = 1_000
/** MiB of heap: enough for a gateway that remembers few users, too little for one with the defaults. */
const heap = 96

interface Playing extends Users {
  readonly watch: Watch
  readonly stage: ReplicaStage
  /** The upstream's port. */
  readonly upstream: number
}

export async function coldStart(watch: Watch): Promise<void> {
  const { say, expect } = watch
  const upstream = await startUpstream()
  const stage = await openStage()
  try {
    await stage.migrate()
    const { keys, tokens } = await createUsers(stage, users, 'pro')
    say(`${users} users, and a token of ${tokens[0]?.length} bytes of each`)
    const playing = { watch, stage, upstream: upstream.port, tokens, keys }
    const usual = await askForAll(playing, 'by default')
    // A process collects garbage when it needs room. A small heap shows how much it must have.
    const small = await askForAll(
      playing,
      `remembering ${few}`,
      { remember: { users: few, tokens: few } },
      { NODE_OPTIONS: `--max-old-space-size=${heap}` },
    )
    expect('by default: each user is looked up once', usual.lookUps === users, `${usual.lookUps} look-ups`)
    expect(
      'by default: a known user is not looked up again',
      usual.again === 0,
      `${usual.again} look-ups for ${usual.asked} more requests`,
    )
    expect('by default: memory stays below 400 MiB', usual.peak < 400, `${usual.peak.toFixed(0)} MiB`)
    expect(`remembering ${few}: memory stays below 250 MiB`, small.peak < 250, `${small.peak.toFixed(0)} MiB`)
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

interface Outcome {
  readonly lookUps: number
  /** Look-ups for further requests of users who are known, and how many requests. */
  readonly again: number
  readonly asked: number
  /** MiB. */
  readonly peak: number
}

/** @param auth more of the section `auth` */
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
    // The gateway remembers nothing before its first heartbeat.
    await sleep(1_000)
    const before = peakMemory(gateway.pids)
    const server = watchServer(stage.database)
    const { answered, failures, seconds, ownStall } = await rush(gateway.port, tokens, together)
    const longest = await server.stop()
    const { lookUps, mostOfOne } = await relay.counts()
    say(
      `${title}: ${answered} answers in ${seconds.toFixed(1)} s, ${together} at the same moment for each user; all were known after that`,
    )
    // On a busy machine a stall may come from other work.
    say(
      `${title}: the drill itself stood still for ${ownStall.toFixed(0)} ms at most, Postgres took ${longest.toFixed(0)} ms at most for a look-up of the drill's`,
    )
    const failed = `${failures.length} of ${users * together} ${failures.slice(0, 9)}`
    expect(`${title}: no request fails`, failures.length === 0 && answered === users * together, failed)
    expect(
      `${title}: at most one look-up of a user is under way`,
      mostOfOne === 1,
      `${mostOfOne} at most, ${lookUps} in all`,
    )
    const everyTenth = tokens.filter((_, at) => at % 10 === 0)
    const again = await rush(gateway.port, everyTenth, 1)
    const later = await relay.counts()
    const peak = peakMemory(gateway.pids)
    say(`${title}: memory ${before.toFixed(0)} → ${peak.toFixed(0)} MiB at its peak`)
    await gateway.stop()
    return { lookUps, again: later.lookUps - lookUps, asked: again.answered, peak }
  } finally {
    await relay.stop()
  }
}

/** Measures how long Postgres takes, asked directly 50 times a second. */
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
