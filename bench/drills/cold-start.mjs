// 100,000 users come at once to a gateway that knows nobody: each is looked up once, and memory is what was configured.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { generatePrivateJwk } from '../../dist/identity/signing-key.js'
import { readSigningKeys } from '../../dist/identity/signing-keys.js'
import { createTokens } from '../../dist/identity/tokens.js'
import { peakMemory } from '../costs.mjs'
import { startCountingRelay } from './counting-relay.mjs'
import { openStage } from './replicas.mjs'
import { rush } from './rush.mjs'
import { startUpstream } from './stage.mjs'

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
    await stage.database.query(
      `insert into users (email, password_hash, plan)
       select 'firstname.lastname' || i || '@example.com', '-', 'pro' from generate_series(1, ${users}) i`,
    )
    await stage.database.query('vacuum analyze users')
    const keys = join(stage.folder, 'key.json')
    writeFileSync(keys, (await generatePrivateJwk('ES256')).text, { mode: 0o600 })
    const tokens = await signTokens(keys)
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

/** @returns {Promise<string[]>} */
async function signTokens(file) {
  const tokens = createTokens({
    keys: await readSigningKeys([file]),
    clock: Date,
    issuer: 'peage',
    audience: 'peage',
    accessTokenTtl: 86_400_000,
    refreshTokenTtl: 86_400_000,
  })
  const signed = []
  for (let id = 1; id <= users; id += 100) {
    const some = Array.from({ length: 100 }, (_, at) =>
      tokens.issueAccess({ id: id + at, email: `firstname.lastname${id + at}@example.com`, plan: 'pro' }),
    )
    signed.push(...(await Promise.all(some)))
  }
  return signed
}

async function askForAll({ say, expect, stage, upstream, tokens, keys }, title, { auth = {}, env = {} }) {
  const relay = await startCountingRelay(stage.url)
  try {
    const gateway = await stage.start({
      through: relay.url,
      settings: `auth: ${JSON.stringify({ keys: [keys], ...auth })}`,
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'] } }
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
