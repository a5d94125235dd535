// 500 logins at once, 200 uploads, and heads that are too large or never end: guarded requests go on, and the excess is refused in our words.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bearer, createAccounts, noRateLimits, password } from './accounts.mjs'
import { peakDuring } from './memory.mjs'
import { openStage } from './replicas.mjs'
import { setting } from './settings.mjs'
import { startUpstream } from './stage.mjs'
import { post } from './subjects.mjs'

const seconds = setting('FLOODS_SECONDS', 20, 5)
const perSecond = 200
const logins = 500
const uploads = 200
/** To the upstream of uploads: fewer than come. */
const connections = 128
const heads = 100
const uploadBytes = 1 << 20

/** @type {import('./main.mjs').Drill} */
export async function floods({ say, expect }) {
  const upstream = await startUpstream()
  const stage = await openStage()
  const load = fork(fileURLToPath(new URL('steady-load.mjs', import.meta.url)))
  try {
    const target = `{ targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: ${connections}`
    const gateway = await stage.start({
      settings: `auth: { ${noRateLimits} }`,
      routing: `upstreams: { service: ${target} }, uploads: ${target}, connections: ${connections} } }
routes:
  - { path: /public/small, upstream: service }
  - { path: /public/digest, upstream: uploads }`,
    })
    const { port, pids } = gateway
    // With a hash as costly as everybody's.
    const own = { email: 'own@drill.test', password }
    await post(port, 'register', own)
    const headers = bearer((await post(port, 'login', own)).body.access_token)
    const emails = await createAccounts(stage.database, logins)
    await stage.database.query(
      'update users set password_hash = (select password_hash from users where email = $1)',
      [own.email],
    )
    const floodsOf = {
      [`${logins} logins at once`]: { run: () => signIn(port, emails), allowed: ['200', '503 in our words'] },
      [`${uploads} uploads of 1 MiB at once`]: {
        run: () => upload(port, headers),
        allowed: ['200', '503 in our words'],
      },
      [`${heads} connections with heads that are too large`]: {
        run: () => sendHeads(port, tooLarge),
        allowed: ['431 in our words'],
      },
      [`${heads} connections with heads that never end`]: {
        run: () => sendHeads(port, endless),
        allowed: ['431 in our words'],
      },
      [`${heads} connections with heads of 2,000 fields`]: {
        run: () => sendHeads(port, ofManyFields),
        allowed: ['431 in our words'],
      },
    }
    for (const [name, { run, allowed }] of Object.entries(floodsOf)) {
      load.send({ port, perSecond, seconds, headers })
      let isOver = false
      const measured = once(load, 'message').finally(() => {
        isOver = true
      })
      const seen = new Map()
      const { growth } = await peakDuring(pids[0] ?? 0, async () => {
        while (!isOver) {
          for (const what of await run()) seen.set(what, (seen.get(what) ?? 0) + 1)
          await sleep(200)
        }
      })
      const [{ done, failures, p99, ownStall }] = await measured
      expect(
        `${name}: guarded requests go on, p99 below 250 ms at ${perSecond}/s`,
        failures.length === 0 && p99 < 250,
        `p99 ${p99.toFixed(1)} ms, ${failures.length} of ${done + failures.length} failed ${[...new Set(failures)]}`,
      )
      expect(
        `${name}: the excess is refused in our words`,
        [...seen.keys()].every(what => allowed.includes(what)) && allowed.every(what => seen.has(what)),
        JSON.stringify(Object.fromEntries(seen)),
      )
      say(
        `memory grew by ${growth.toFixed(0)} MiB; the load itself stood still for ${ownStall.toFixed(0)} ms at most`,
      )
    }
  } finally {
    load.kill('SIGKILL')
    await stage.stop()
    await upstream.stop()
  }
}

function signIn(port, emails) {
  return Promise.all(
    emails.map(email =>
      send(port, '/api/v1/auth/login', {}, [Buffer.from(JSON.stringify({ email, password }))], 0),
    ),
  )
}

function upload(port, headers) {
  const pieces = Array.from({ length: 16 }, () => Buffer.alloc(uploadBytes / 16, 'x'))
  return Promise.all(
    Array.from({ length: uploads }, () =>
      send(port, '/public/digest', { ...headers, 'content-length': uploadBytes }, pieces, 100),
    ),
  )
}

/** @returns {Promise<string>} what came: a status, and whether a refusal says what it is */
function send(port, path, headers, pieces, everyMs) {
  return new Promise(resolve => {
    const sent = request({ host: '127.0.0.1', port, method: 'POST', path, headers, agent: false })
    let answered = ''
    sent.on('error', error => resolve(answered || (error.code ?? error.message)))
    sent.on('response', async answer => {
      let text = ''
      try {
        for await (const chunk of answer) text += chunk
      } catch {
        return resolve('breaks off')
      }
      answered = nameOf(answer.statusCode, text)
      resolve(answered)
    })
    const body = async function* () {
      for (const piece of pieces) {
        yield piece
        await sleep(everyMs)
      }
    }
    Readable.from(body()).pipe(sent)
  })
}

function nameOf(status, text) {
  if (status === 200) return '200'
  try {
    return typeof JSON.parse(text).error === 'string' ? `${status} in our words` : `${status} ${text}`
  } catch {
    return `${status} ${text}`
  }
}

const start = 'GET /public/small HTTP/1.1\r\nHost: flood\r\n'
const field = `X-Flood: ${'x'.repeat(1_000)}\r\n`

/** @type {(at: number) => string | undefined} what is written next, if anything is */
const tooLarge = at => (at === 0 ? `${start}${field.repeat(20)}\r\n` : undefined)
const endless = at => (at === 0 ? start : field)
const ofManyFields = at =>
  at === 0
    ? `${start}${Array.from({ length: 2_000 }, (_, n) => `X-${n}: flooding\r\n`).join('')}\r\n`
    : undefined

/** @returns {Promise<string[]>} what each was answered */
function sendHeads(port, next) {
  return Promise.all(
    Array.from(
      { length: heads },
      () =>
        new Promise(resolve => {
          const socket = connect(port, '127.0.0.1')
          let text = ''
          let at = 0
          const timer = setInterval(() => {
            const more = next(at)
            at += 1
            if (more !== undefined && socket.writable) socket.write(more)
          }, 20)
          socket.on('data', chunk => {
            text += chunk
          })
          socket
            .on('error', () => {})
            .on('close', () => {
              clearInterval(timer)
              const [head = '', body = ''] = text.split('\r\n\r\n')
              resolve(text === '' ? 'cut without a word' : nameOf(Number(head.slice(9, 12)), body))
            })
          socket.on('end', () => socket.end())
        }),
    ),
  )
}
