// In each flood, clients send 500 logins, 200 uploads, or request heads that are too large or never end. The gateway
// refuses the requests that it cannot handle, and continues to serve other requests.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { type OutgoingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { password } from '../support/client.ts'
import { bearer, createAccounts, login, noRateLimits } from './accounts.ts'
import { codeOf } from './error-code.ts'
import { peakDuring } from './memory.ts'
import { openStage } from './replicas.ts'
import { setting } from './settings.ts'
import { startUpstream } from './stage.ts'
import type { Window, WindowResult } from './steady-load.ts'
import { post } from './subjects.ts'
import type { Watch } from './watch.ts'

const seconds = setting('FLOODS_SECONDS', 20, 5)
const perSecond = 200
const logins = 500
const uploads = 200
/**
 * The maximum number of connections to the upstream that receives the uploads. The number of uploads is higher, so the
 * gateway must refuse some of them.
 */
const connections = 128
const heads = 100
const uploadBytes = 1 << 20
/**
 * The outcome of a request contains its status code. If the response has the JSON error message of the gateway, the
 * outcome also contains this text.
 */
const explained = 'with an error message'

interface Flood {
  readonly name: string
  /** @returns the outcome of each request: its status code, and whether the response has an error message */
  run(): Promise<string[]>
  /** The outcomes that are allowed. Each allowed outcome must also occur at least once. */
  readonly outcomes: readonly string[]
}

export async function floods(watch: Watch): Promise<void> {
  const upstream = await startUpstream()
  const stage = await openStage()
  const load = fork(fileURLToPath(new URL('./steady-load.js', import.meta.url)))
  try {
    const target = `{ targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: ${connections}`
    const { port, pid } = await stage.start({
      settings: `auth: { ${noRateLimits} }`,
      routing: `upstreams: { service: ${target} }, uploads: ${target}, connections: ${connections} } }
routes:
  - { path: /public/small, upstream: service }
  - { path: /public/digest, upstream: uploads }`,
    })
    // The accounts get the password hash of a registered user. Verifying this hash costs as much CPU time as in
    // production.
    const email = 'own@drill.test'
    await post(port, 'register', { email, password })
    const headers = bearer((await login(port, email)).access)
    const emails = await createAccounts(stage.database, logins)
    await stage.database.query(
      'update users set password_hash = (select password_hash from users where email = $1)',
      [email],
    )
    const heads431 = (name: string, next: Writing): Flood => ({
      name: `${heads} connections with heads ${name}`,
      run: () => sendHeads(port, next),
      outcomes: [`431 ${explained}`],
    })
    const all: Flood[] = [
      {
        name: `${logins} logins at once`,
        run: () => signIn(port, emails),
        outcomes: ['200', `503 ${explained}`],
      },
      {
        name: `${uploads} uploads of 1 MiB at once`,
        run: () => upload(port, headers),
        outcomes: ['200', `503 ${explained}`],
      },
      heads431('that are too large', tooLarge),
      heads431('that never end', endless),
      heads431('of 2,000 headers', ofManyFields),
    ]
    for (const flood of all) {
      load.send({ port, perSecond, seconds, headers } satisfies Window)
      await judge(flood, pid, once(load, 'message') as Promise<[WindowResult]>, watch)
    }
  } finally {
    load.kill('SIGKILL')
    await stage.stop()
    await upstream.stop()
  }
}

/** Repeats a flood while another process sends a steady load of requests with an access token and measures them. */
async function judge(
  { name, run, outcomes }: Flood,
  pid: number,
  measuring: Promise<[WindowResult]>,
  { say, expect }: Watch,
): Promise<void> {
  let isOver = false
  const measured = measuring.finally(() => {
    isOver = true
  })
  const seen = new Map<string, number>()
  const { growth } = await peakDuring(pid, async () => {
    while (!isOver) {
      for (const outcome of await run()) seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
      await sleep(200)
    }
  })
  const [{ done, failures, p99, ownStall }] = await measured
  expect(
    `${name}: guarded requests succeed, p99 below 250 ms at ${perSecond}/s`,
    failures.length === 0 && p99 < 250,
    `p99 ${p99.toFixed(1)} ms, ${failures.length} of ${done + failures.length} failed ${[...new Set(failures)]}`,
  )
  expect(
    `${name}: the gateway refuses the excess with an error message`,
    [...seen.keys()].every(outcome => outcomes.includes(outcome)) && outcomes.every(one => seen.has(one)),
    JSON.stringify(Object.fromEntries(seen)),
  )
  say(
    `memory grew by ${growth.toFixed(0)} MiB; the load process was blocked for at most ${ownStall.toFixed(0)} ms`,
  )
}

function signIn(port: number, emails: readonly string[]): Promise<string[]> {
  return Promise.all(
    emails.map(email => {
      const body = Buffer.from(JSON.stringify({ email, password }))
      return send(port, '/api/v1/auth/login', {}, [body], 0)
    }),
  )
}

function upload(port: number, headers: OutgoingHttpHeaders): Promise<string[]> {
  const pieces = Array.from({ length: 16 }, () => Buffer.alloc(uploadBytes / 16, 'x'))
  const withLength = { ...headers, 'content-length': uploadBytes }
  return Promise.all(
    Array.from({ length: uploads }, () => send(port, '/public/digest', withLength, pieces, 100)),
  )
}

/** @returns the outcome of a request */
function send(
  port: number,
  path: string,
  headers: OutgoingHttpHeaders,
  pieces: readonly Buffer[],
  everyMs: number,
): Promise<string> {
  return new Promise(resolve => {
    const sent = request({ host: '127.0.0.1', port, method: 'POST', path, headers, agent: false })
    let outcome = ''
    sent.on('error', error => resolve(outcome || codeOf(error)))
    sent.on('response', async answer => {
      try {
        outcome = outcomeOf(answer.statusCode ?? 0, await text(answer))
        resolve(outcome)
      } catch {
        resolve('broken off')
      }
    })
    async function* body() {
      for (const piece of pieces) {
        yield piece
        await sleep(everyMs)
      }
    }
    Readable.from(body()).pipe(sent)
  })
}

function outcomeOf(status: number, body: string): string {
  if (status === 200) return '200'
  try {
    const { error } = JSON.parse(body) as { error?: unknown }
    return typeof error === 'string' ? `${status} ${explained}` : `${status} ${body}`
  } catch {
    return `${status} ${body}`
  }
}

/** Returns the next text to write, or `undefined` if there is no more text. @param at the number of previous calls */
type Writing = (at: number) => string | undefined

const start = 'GET /public/small HTTP/1.1\r\nHost: flood\r\n'
const field = `X-Flood: ${'x'.repeat(1_000)}\r\n`
const fields = Array.from({ length: 2_000 }, (_, n) => `X-${n}: flooding\r\n`).join('')

const tooLarge: Writing = at => (at === 0 ? `${start}${field.repeat(20)}\r\n` : undefined)
const endless: Writing = at => (at === 0 ? start : field)
const ofManyFields: Writing = at => (at === 0 ? `${start}${fields}\r\n` : undefined)

function sendHeads(port: number, next: Writing): Promise<string[]> {
  return Promise.all(Array.from({ length: heads }, () => sendHead(port, next)))
}

/** @returns the outcome of a request */
function sendHead(port: number, next: Writing): Promise<string> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    let received = ''
    let at = 0
    const timer = setInterval(() => {
      const more = next(at)
      at += 1
      if (more !== undefined && socket.writable) socket.write(more)
    }, 20)
    socket.on('data', chunk => {
      received += chunk
    })
    socket.on('error', () => {}).on('end', () => socket.end())
    socket.on('close', () => {
      clearInterval(timer)
      const [head = '', body = ''] = received.split('\r\n\r\n')
      resolve(received === '' ? 'closed without a response' : outcomeOf(Number(head.slice(9, 12)), body))
    })
  })
}
