// A logout ends access tokens and streams on the other replica within 50 ms of its answer; without the feed, within 5 s.
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '../processes.mjs'
import { bearer, createAccounts, login, noRateLimits, logout as signOut } from './accounts.mjs'
import { startReplicas } from './replicas.mjs'
import { longestStall, stallsIn } from './revocation-verdict.mjs'
import { setting } from './settings.mjs'
import { startUpstream } from './stage.mjs'
import { startStallingRelay } from './stalling-relay.mjs'
import { ask } from './subjects.mjs'

const logouts = setting('LOGOUTS', 1_000, 200)
/** At once, each of a user of its own. */
const lanes = 8
/** Every so many logouts an event stream is open too. */
const streamsEvery = 10
const roundsWithoutFeed = 3

/** @type {import('./main.mjs').Drill} */
export async function logout({ say, expect }) {
  const upstream = await startUpstream()
  const folder = temporaryFolder()
  const delays = join(folder.path, 'loop')
  let relay
  try {
    const stage = await startReplicas({
      settings: `auth: { logout_ends_access: true, ${noRateLimits} }`,
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes:
  - { path: /public/small, upstream: service }
  - { path: /public/events, upstream: service }`,
      env: {
        NODE_OPTIONS: `--import=${new URL('watch-loop.mjs', import.meta.url).href}`,
        LOOP_DELAYS: delays,
      },
      listenThrough: async url => {
        relay = await startStallingRelay(url)
        return relay.url
      },
    })
    try {
      const emails = await createAccounts(stage.database, lanes)
      await sleep(1_000)
      const stoodStill = ({ pids: [pid] }) => stallsIn(`${delays}.${pid}`)
      await withFeed(stage.replicas, emails, { say, expect, stoodStill })
      await withoutFeed(stage.replicas, emails, relay, { say, expect })
    } finally {
      await stage.stop()
    }
  } finally {
    relay?.stop()
    folder.remove()
    await upstream.stop()
  }
}

async function withFeed(replicas, emails, { say, expect, stoodStill }) {
  const results = []
  let begun = 0
  const lane = async email => {
    while (begun < logouts) {
      begun += 1
      results.push(await endOne(replicas, email, { watchMs: 100, withStream: begun % streamsEvery === 0 }))
    }
  }
  await Promise.all(emails.map(lane))
  const last = sortedOf(results.map(({ lastAccepted }) => lastAccepted))
  const streams = sortedOf(results.flatMap(({ streamEnded }) => streamEnded ?? []))
  const late = results.filter(({ lastAccepted }) => lastAccepted >= 50)
  const stalls = replicas.flatMap(stoodStill)
  const delayed = late
    .map(({ answered, acceptedAt }) => longestStall(stalls, answered, acceptedAt))
    .filter(ms => ms > 20)
  if (delayed.length > 0)
    say(
      `${delayed.length} told apart: a gateway's event loop stood still for ${delayed.map(ms => ms.toFixed(0))} ms`,
    )
  expect(
    `${logouts} logouts: no access token is accepted on the other replica 50 ms after the answer`,
    late.length === delayed.length && results.every(({ refused }) => refused),
    `${late.length - delayed.length} of ${results.length}; the last accepted one was sent ${tell(last)} after the answer (0: none after it)`,
  )
  expect(
    'none is accepted after the answer where it was logged out',
    results.every(({ acceptedHere }) => !acceptedHere),
    `${results.filter(({ acceptedHere }) => acceptedHere).length} of ${results.length}`,
  )
  expect(
    'an open stream on the other replica ends within 1 s',
    streams.length > 0 && (streams.at(-1) ?? 0) < 1_000,
    `${tell(streams)}, of ${streams.length}`,
  )
  say(`${emails.length} at a time; times are of the drill's clock, so that they hold its own delays`)
}

async function withoutFeed(replicas, emails, relay, { expect }) {
  const results = []
  for (let round = 0; round < roundsWithoutFeed; round += 1) {
    const ending = emails.map(email =>
      endOne(replicas, email, { watchMs: 7_000, withStream: true, before: () => relay.stall() }),
    )
    results.push(...(await Promise.all(ending)))
    relay.flow()
    await sleep(4_000)
  }
  const last = sortedOf(results.map(({ lastAccepted }) => lastAccepted))
  expect(
    `${results.length} logouts with the feed cut: none is accepted on the other replica 5 s after the answer`,
    results.every(({ lastAccepted, refused }) => lastAccepted < 5_000 && refused),
    `the last accepted one was sent ${tell(last)} after the answer`,
  )
  const streams = sortedOf(results.flatMap(({ streamEnded }) => streamEnded ?? []))
  expect(
    'with the feed cut open streams end within 5 s',
    streams.length === results.length && (streams.at(-1) ?? 0) < 5_000,
    tell(streams),
  )
}

/**
 * Signs in and out at the first replica, while the second is asked with the access token, one request after the other.
 * @returns {Promise<{ lastAccepted: number, answered: bigint, acceptedAt: bigint, refused: boolean, acceptedHere: boolean, streamEnded: number | undefined }>}
 *   `lastAccepted` and `streamEnded` in milliseconds after the logout's answer, 0 where it was before it
 */
async function endOne([first, second], email, { watchMs, withStream, before = () => {} }) {
  const { access, refresh } = await login(first.port, email)
  for (const { port } of [first, second]) {
    const { status } = await ask(port, bearer(access))
    if (status !== 200) throw new Error(`a token of just now was answered ${status}`)
  }
  const stream = withStream ? await openStream(second.port, access) : undefined
  before()
  await signOut(first.port, refresh)
  const answered = performance.now()
  const answeredAt = process.hrtime.bigint()
  let acceptedAt = answeredAt
  const here = ask(first.port, bearer(access))
  let lastAccepted = 0
  let refused = false
  while (performance.now() - answered < watchMs) {
    const sent = performance.now()
    const { status } = await ask(second.port, bearer(access))
    if (status === 200) {
      lastAccepted = sent - answered
      acceptedAt = process.hrtime.bigint()
    }
    // Without the feed and its own record 503 is no acceptance either.
    refused = status === 401
    await sleep(refused ? 10 : 1)
  }
  const ended = stream && (await Promise.race([stream.ended, sleep(watchMs, Number.POSITIVE_INFINITY)]))
  stream?.close()
  return {
    lastAccepted,
    answered: answeredAt,
    acceptedAt,
    refused,
    acceptedHere: (await here).status === 200,
    streamEnded: ended && Math.max(0, ended - answered),
  }
}

/** @returns {Promise<{ ended: Promise<number>, close: () => void }>} */
async function openStream(port, token) {
  return new Promise((resolve, reject) => {
    const path = '/public/events?count=1000&every=1000'
    const asked = get({ host: '127.0.0.1', port, path, headers: bearer(token), agent: false }, answer => {
      if (answer.statusCode !== 200) reject(new Error(`a stream was answered ${answer.statusCode}`))
      const ended = new Promise(end => answer.resume().on('close', () => end(performance.now())))
      resolve({ ended, close: () => asked.destroy() })
    })
    asked.on('error', reject)
  })
}

const sortedOf = numbers => numbers.toSorted((a, b) => a - b)

/** @param {number[]} sorted */
function tell(sorted) {
  const at = share => (sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN).toFixed(1)
  return `p50 ${at(0.5)}, p99 ${at(0.99)}, at most ${at(1)} ms`
}
