// Sends requests to your own installation while your commands stop and restart its Postgres or Redis.
import { exec } from 'node:child_process'
import { Agent as HttpAgent, request as http } from 'node:http'
import { Agent as HttpsAgent, request as https } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { setting } from './settings.ts'
import type { Watch } from './watch.ts'

const { STAGING_GATEWAYS = '', STAGING_STORE = 'redis', STAGING_BREAK, STAGING_MEND } = process.env
const outageMs = setting('STAGING_SECONDS', 30, 5) * 1_000
/** The milliseconds between two requests of the same kind to a gateway. */
const everyMs = 100
const calmMs = 5_000
const recoveryMs = 5_000

const kinds = ['paying', 'free'] as const
type Kind = (typeof kinds)[number]
/** The allowed status codes. */
type Allowed = Readonly<Record<Kind, readonly number[]>>

/**
 * The requirements while a store is down, by the name of the store. `soonMs` is the maximum duration of a request in
 * milliseconds.
 */
const bars: Readonly<Record<string, Allowed & { readonly soonMs: number }>> = {
  redis: { paying: [200], free: [200, 429], soonMs: 1_000 },
  postgres: { paying: [200, 503], free: [200, 429, 503], soonMs: 2_000 },
}
const well: Allowed = { paying: [200], free: [200, 429] }

interface Answer {
  readonly kind: Kind
  /** The status code; 0 if there is no response. */
  readonly status: number
  readonly tookMs: number
}

export async function staging({ say, expect }: Watch): Promise<void> {
  const bar = bars[STAGING_STORE]
  if (bar === undefined) throw new Error(`STAGING_STORE must be ${Object.keys(bars).join(' or ')}`)
  if (STAGING_GATEWAYS === '')
    throw new Error('STAGING_GATEWAYS is not set. Set it to the URLs of the gateways, separated by commas.')
  const gateways = STAGING_GATEWAYS.split(',').map(url => new URL(url.trim()))
  const load = startLoad(gateways, { paying: callerOf('PAYING'), free: callerOf('FREE') })
  const expectWell = (name: string, answers: readonly Answer[]) =>
    expect(name, answers.length > 0 && areAllowed(answers, well), described(answers))
  try {
    await sleep(calmMs)
    expectWell('all requests succeed before the outage', load.take())
    await play(say, STAGING_BREAK, `stop ${STAGING_STORE} now`)
    await sleep(outageMs)
    await play(say, STAGING_MEND, `start ${STAGING_STORE} again now`)
    const during = load.take()
    await sleep(recoveryMs)
    const recovering = load.take()
    await sleep(calmMs)
    const after = load.take()
    const all = [...during, ...recovering]
    for (const kind of kinds) {
      const mine = all.filter(answer => answer.kind === kind)
      const slowest = Math.max(0, ...mine.map(({ tookMs }) => tookMs))
      expect(
        `${kind} users: all responses are ${bar[kind].join(' or ')} and take less than ${bar.soonMs / 1_000} s`,
        mine.length > 0 && slowest < bar.soonMs && areAllowed(mine, bar),
        `${described(mine)}; at most ${slowest.toFixed(0)} ms`,
      )
    }
    expectWell('all requests succeed again within 5 s after the outage', after)
  } finally {
    await load.stop()
  }
}

function areAllowed(answers: readonly Answer[], allowed: Allowed): boolean {
  return answers.every(({ kind, status }) => allowed[kind].includes(status))
}

/** Runs a shell command. If `command` is undefined, asks the operator to do `what` by hand within 10 s. */
async function play(say: Watch['say'], command: string | undefined, what: string): Promise<void> {
  if (command === undefined) {
    say(`${what} (by hand, within 10 s)`)
    await sleep(10_000)
    return
  }
  say(command)
  await promisify(exec)(command)
}

interface Caller {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

function callerOf(name: string): Caller {
  const { [`STAGING_${name}_PATH`]: path, [`STAGING_${name}_TOKEN`]: token } = process.env
  if (!path || !token) throw new Error(`STAGING_${name}_PATH or STAGING_${name}_TOKEN is not set. Set both.`)
  // An access token is a JWT with three parts. An API key has only one part.
  const isJwt = token.split('.').length === 3
  return { path, headers: isJwt ? { authorization: `Bearer ${token}` } : { 'x-api-key': token } }
}

interface Load {
  /** Returns the responses since the last call. */
  take(): Answer[]
  stop(): Promise<void>
}

/**
 * Sends requests of each caller to each gateway. The rate is fixed, except while responses take longer than `everyMs`.
 */
function startLoad(gateways: readonly URL[], callers: Readonly<Record<Kind, Caller>>): Load {
  const plain = new HttpAgent({ keepAlive: true })
  const secure = new HttpsAgent({ keepAlive: true })
  const answers: Answer[] = []
  let isOver = false
  const statusOf = (gateway: URL, { path, headers }: Caller) =>
    new Promise<number>(resolve => {
      const url = new URL(path, gateway)
      const options = { headers, timeout: 30_000 }
      const isSecure = gateway.protocol === 'https:'
      const sent = isSecure
        ? https(url, { ...options, agent: secure })
        : http(url, { ...options, agent: plain })
      sent
        .on('response', answer => {
          answer.on('error', () => resolve(0)).on('end', () => resolve(answer.statusCode ?? 0))
          answer.resume()
        })
        .on('timeout', () => sent.destroy())
        .on('error', () => resolve(0))
        .end()
    })
  const running = gateways.flatMap(gateway =>
    kinds.map(async kind => {
      while (!isOver) {
        const begun = performance.now()
        const status = await statusOf(gateway, callers[kind])
        const tookMs = performance.now() - begun
        answers.push({ kind, status, tookMs })
        await sleep(Math.max(0, everyMs - tookMs))
      }
    }),
  )
  return {
    take: () => answers.splice(0),
    async stop() {
      isOver = true
      await Promise.all(running)
    },
  }
}

/** Counts responses by kind and status code. */
function described(answers: readonly Answer[]): string {
  const counts = new Map<string, number>()
  for (const { kind, status } of answers)
    counts.set(`${kind} ${status}`, (counts.get(`${kind} ${status}`) ?? 0) + 1)
  return [...counts].map(([what, count]) => `${what}: ${count}`).join(', ')
}
