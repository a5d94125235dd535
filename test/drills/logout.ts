// A logout ends access tokens and streams on the other replica within 50 ms of its answer; without the feed, within 5 s.
import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '../support/processes.ts'
import { bearer, createAccounts, login, noRateLimits, logout as signOut } from './accounts.ts'
import { quantiles } from './alerts.ts'
import { type StallableRelay, startStallingRelay } from './relay.ts'
import { type Replica, startReplicas } from './replicas.ts'
import { setting } from './settings.ts'
import { serviceAt, startUpstream } from './stage.ts'
import { longestStall, type Stalls, watchStalls } from './stalls.ts'
import { ask } from './subjects.ts'
import type { Watch } from './watch.ts'

const logouts = setting('LOGOUTS', 1_000, 200)
/** At once, each of a user of its own. */
const lanes = 8
/** An event stream is open at one of so many logouts. */
const streamsEvery = 10
const roundsWithoutFeed = 3

type Replicas = readonly [Replica, Replica]

export async function logout(watch: Watch): Promise<void> {
  const upstream = await startUpstream()
  const folder = temporaryFolder()
  const stalls = watchStalls(folder.path)
  let relay: StallableRelay | undefined
  try {
    const stage = await startReplicas({
      settings: `auth: { logout_ends_access: true, ${noRateLimits} }`,
      routing: `${serviceAt(upstream.port)}
routes:
  - { path: /public/small, upstream: service }
  - { path: /public/events, upstream: service }`,
      env: stalls.env,
      listenThrough: async url => {
        relay = await startStallingRelay(url)
        return relay.url
      },
    })
    try {
      const emails = await createAccounts(stage.database, lanes)
      await sleep(1_000)
      await withFeed(stage.replicas, emails, stalls, watch)
      if (relay !== undefined) await withoutFeed(stage.replicas, emails, relay, watch)
    } finally {
      await stage.stop()
    }
  } finally {
    await relay?.stop()
    await folder.remove()
    await upstream.stop()
  }
}

async function withFeed(
  replicas: Replicas,
  emails: readonly string[],
  stalls: Stalls,
  { say, expect }: Watch,
): Promise<void> {
  const results: Ended[] = []
  let begun = 0
  const lane = async (email: string) => {
    while (begun < logouts) {
      begun += 1
      results.push(await endOne(replicas, email, { watchMs: 100, withStream: begun % streamsEvery === 0 }))
    }
  }
  await Promise.all(emails.map(lane))
  const streams = results.flatMap(({ streamEnded }) => streamEnded ?? [])
  const late = results.filter(({ lastAccepted }) => lastAccepted >= 50)
  const all = replicas.flatMap(replica => stalls.of(replica))
  const excuses = late
    .map(({ answered, acceptedAt }) => longestStall(all, answered, acceptedAt))
    .filter(ms => ms > 20)
  if (excuses.length > 0)
    say(
      `${excuses.length} excused: a gateway's event loop stood still for ${excuses.map(ms => ms.toFixed(0))} ms`,
    )
  expect(
    `${logouts} logouts: no access token is accepted on the other replica 50 ms after the answer`,
    late.length === excuses.length && results.every(({ refused }) => refused),
    `${late.length - excuses.length} of ${results.length}; the last accepted one was sent ${lastOf(results)} after the answer (0: none after it)`,
  )
  const acceptedHere = results.filter(one => one.acceptedHere).length
  expect(
    'none is accepted after the answer where it was logged out',
    acceptedHere === 0,
    `${acceptedHere} of ${results.length}`,
  )
  expect(
    'an open stream on the other replica ends within 1 s',
    streams.length > 0 && Math.max(...streams) < 1_000,
    `${described(streams)}, of ${streams.length}`,
  )
  say(`${emails.length} at a time; times are of the drill's clock, so they include its own delays`)
}

async function withoutFeed(
  replicas: Replicas,
  emails: readonly string[],
  relay: StallableRelay,
  { expect }: Watch,
): Promise<void> {
  const results: Ended[] = []
  for (let round = 0; round < roundsWithoutFeed; round += 1) {
    const ending = emails.map(email =>
      endOne(replicas, email, { watchMs: 7_000, withStream: true, before: () => relay.stall() }),
    )
    results.push(...(await Promise.all(ending)))
    relay.flow()
    await sleep(4_000)
  }
  expect(
    `${results.length} logouts with the feed cut: none is accepted on the other replica 5 s after the answer`,
    results.every(({ lastAccepted, refused }) => lastAccepted < 5_000 && refused),
    `the last accepted one was sent ${lastOf(results)} after the answer`,
  )
  const streams = results.flatMap(({ streamEnded }) => streamEnded ?? [])
  expect(
    'with the feed cut open streams end within 5 s',
    streams.length === results.length && Math.max(...streams) < 5_000,
    described(streams),
  )
}

interface Ended {
  /** Milliseconds from the answer to the last request that was accepted at the second replica; 0: none was. */
  readonly lastAccepted: number
  /** Nanoseconds of the clock that all processes share: of the logout's answer, and of the last acceptance. */
  readonly answered: bigint
  readonly acceptedAt: bigint
  /** Whether the last request was refused. */
  readonly refused: boolean
  /** At the first replica, after the answer. */
  readonly acceptedHere: boolean
  /** Milliseconds after the answer. */
  readonly streamEnded: number | undefined
}

interface Ending {
  /** Milliseconds for which the second replica is asked after the answer. */
  readonly watchMs: number
  readonly withStream: boolean
  readonly before?: () => void
}

/** Signs in and out at the first replica. Asks the second one with the access token, one request after the other. */
async function endOne(
  [first, second]: Replicas,
  email: string,
  { watchMs, withStream, before }: Ending,
): Promise<Ended> {
  const { access, refresh } = await login(first.port, email)
  for (const { port } of [first, second]) {
    const { status } = await ask(port, bearer(access))
    if (status !== 200) throw new Error(`a new token was answered ${status}`)
  }
  const stream = withStream ? await openStream(second.port, access) : undefined
  before?.()
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
    // A replica without the feed answers 503 if it cannot look the session up. That is neither.
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

interface Stream {
  /** When, of `performance.now()`. */
  readonly ended: Promise<number>
  close(): void
}

function openStream(port: number, token: string): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const path = '/public/events?count=1000&every=1000'
    const asked = get({ host: '127.0.0.1', port, path, headers: bearer(token), agent: false }, answer => {
      if (answer.statusCode !== 200) reject(new Error(`a stream was answered ${answer.statusCode}`))
      const ended = new Promise<number>(end => answer.resume().on('close', () => end(performance.now())))
      resolve({ ended, close: () => asked.destroy() })
    })
    asked.on('error', reject)
  })
}

function lastOf(results: readonly Ended[]): string {
  return described(results.map(({ lastAccepted }) => lastAccepted))
}

function described(milliseconds: readonly number[]): string {
  const at = quantiles(milliseconds)
  return `p50 ${at(0.5).toFixed(1)}, p99 ${at(0.99).toFixed(1)}, at most ${at(1).toFixed(1)} ms`
}
