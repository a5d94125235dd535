// After a logout at one replica, the other replica refuses the access token within 50 ms. Without the change feed, the
// other replica refuses the token within 5 s.
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
/** The number of users who log out at the same time. */
const lanes = 8
/** At one in ten logouts, the user has an open event stream. */
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
      `${excuses.length} late refusals do not count, because a gateway's event loop was blocked for ${excuses.map(ms => ms.toFixed(0))} ms`,
    )
  expect(
    `${logouts} logouts: 50 ms after the response, the other replica accepts no access token`,
    late.length === excuses.length && results.every(({ refused }) => refused),
    `${late.length - excuses.length} of ${results.length}; last accepted ${lastOf(results)} after the response (0: none)`,
  )
  const acceptedHere = results.filter(one => one.acceptedHere).length
  expect(
    'the replica of the logout accepts no access token after the response',
    acceptedHere === 0,
    `${acceptedHere} of ${results.length}`,
  )
  expect(
    'an open stream on the other replica ends within 1 s',
    streams.length > 0 && Math.max(...streams) < 1_000,
    `${described(streams)}, ${streams.length} streams`,
  )
  say(`${emails.length} concurrent logouts; the times include delays of the drill process`)
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
    `${results.length} logouts without the feed: 5 s after the response, the other replica accepts no access token`,
    results.every(({ lastAccepted, refused }) => lastAccepted < 5_000 && refused),
    `last accepted ${lastOf(results)} after the response`,
  )
  const streams = results.flatMap(({ streamEnded }) => streamEnded ?? [])
  expect(
    'open streams end within 5 s without the feed',
    streams.length === results.length && Math.max(...streams) < 5_000,
    described(streams),
  )
}

interface Ended {
  /**
   * The milliseconds between the response to the logout and the last request that the second replica accepted. The
   * value is 0 if the second replica accepted no request.
   */
  readonly lastAccepted: number
  /**
   * The time of the response to the logout, and the time of the last accepted request. Both are nanoseconds of the
   * system's monotonic clock.
   */
  readonly answered: bigint
  readonly acceptedAt: bigint
  /** Whether the second replica refused the last request that the drill sent to it. */
  readonly refused: boolean
  /** Whether the first replica still accepted the token after it had responded to the logout. */
  readonly acceptedHere: boolean
  /** The milliseconds between the response to the logout and the end of the stream. */
  readonly streamEnded: number | undefined
}

interface Ending {
  /** The milliseconds after the response to the logout for which the drill sends requests to the second replica. */
  readonly watchMs: number
  readonly withStream: boolean
  readonly before?: () => void
}

/**
 * Logs a user in and out at the first replica. Then sends requests with the user's access token to the second replica.
 */
async function endOne(
  [first, second]: Replicas,
  email: string,
  { watchMs, withStream, before }: Ending,
): Promise<Ended> {
  const { access, refresh } = await login(first.port, email)
  for (const { port } of [first, second]) {
    const { status } = await ask(port, bearer(access))
    if (status !== 200) throw new Error(`a request with a new token got ${status}`)
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
    // If a replica without the feed cannot look up the session, it responds with 503. The drill counts a 503 neither as
    // accepted nor as refused.
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
  /** Resolves with the time when the stream ended, as a value of `performance.now()`. */
  readonly ended: Promise<number>
  close(): void
}

function openStream(port: number, token: string): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const path = '/public/events?count=1000&every=1000'
    const asked = get({ host: '127.0.0.1', port, path, headers: bearer(token), agent: false }, answer => {
      if (answer.statusCode !== 200) reject(new Error(`a stream got ${answer.statusCode}`))
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
  return `p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms, maximum ${at(1).toFixed(1)} ms`
}
