// 100,000 users come at once to a gateway that knows nobody: each is looked up once, and memory is what was configured.
import { setTimeout as sleep } from 'node:timers/promises'
import { peakMemory } from '../costs.mjs'
import { startCountingRelay } from './counting-relay.mjs'
import { openStage } from './replicas.mjs'
import { rush } from './rush.mjs'
import { startUpstream } from './stage.mjs'
import { createUsers } from './users.mjs'

const users = 100_000
/** Requests of one user at the same moment. */
const together = 3
const few = 1_000
/** MiB of heap in which a gateway that remembers few has room enough, and one with the defaults has not. */
const heap = 96

/** @type {import('./main.mjs').Drill} */
export async function coldStart(watch) {
  const upstream = await startUpstream()
  const stage = await openStage()
  try {
    await stage.migrate()
    const { keys, tokens } = await createUsers(stage, users, 'pro')
    watch.say(`${users} users, and a token of ${tokens[0]?.length} bytes of each`)
    const drill = { ...watch, stage, upstream, tokens, keys }
    const usual = await askForAll(drill, 'by default', {})
    // Garbage is collected when there is need: what a process must have shows in a heap that has no more.
    const small = await askForAll(drill, `remembering ${few}`, {
      auth: { remember: { users: few, tokens: few } },
      env: { NODE_OPTIONS: `--max-old-space-size=${heap}` },
    })
    judge(watch, usual, small)
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

async function askForAll({ say, expect, stage, upstream, tokens, keys }, title, { auth = {}, env = {} }) {
  const relay = await startCountingRelay(stage.url)
  try {
    const gateway = await stage.start({
      through: relay.url,
      settings: `auth: ${JSON.stringify({ keys: [keys], ...auth })}`,
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes:
  - { path: /public/small, upstream: service, plans: [pro] }`,
      env,
    })
    // Its first heartbeat: until then nothing is remembered.
    await sleep(1_000)
    const before = peakMemory(gateway.pids)
    const server = watchServer(stage.database)
    const { answered, failures, seconds, ownStall } = await rush(gateway.port, tokens, together)
    const longest = await server.stop()
    const { lookUps, mostOfOne } = await relay.counts()
    say(
      `${title}: ${answered} answers in ${seconds.toFixed(1)} s, ${together} at the same moment for each user; all were known after that`,
    )
    // On a machine that is busy with something else a stall may be nobody's fault here.
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
    const again = await rush(gateway.port, sampleOf(tokens), 1)
    const later = await relay.counts()
    const peak = peakMemory(gateway.pids)
    say(`${title}: memory ${before.toFixed(0)} → ${peak.toFixed(0)} MiB at its peak`)
    await gateway.stop()
    return { lookUps, again: later.lookUps - lookUps, asked: again.answered, peak }
  } finally {
    relay.stop()
  }
}

/** How long Postgres takes, asked directly 50 times a second. @param {import('pg').Pool} database */
function watchServer(database) {
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

/** Every tenth user, of all of them. */
function sampleOf(tokens) {
  return tokens.filter((_, at) => at % 10 === 0)
}

function judge({ expect }, usual, small) {
  expect('by default: each user is looked up once', usual.lookUps === users, `${usual.lookUps} look-ups`)
  expect(
    'by default: who is known is not looked up again',
    usual.again === 0,
    `${usual.again} look-ups for ${usual.asked} more requests`,
  )
  expect('by default: memory stays below 400 MiB', usual.peak < 400, `${usual.peak.toFixed(0)} MiB`)
  expect(`remembering ${few}: memory stays below 250 MiB`, small.peak < 250, `${small.peak.toFixed(0)} MiB`)
}
