// A set-up of one's own, asked by its addresses while a command breaks a store of it and another brings it back.
import { exec } from 'node:child_process'
import { Agent as HttpAgent, request as http } from 'node:http'
import { Agent as HttpsAgent, request as https } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { setting } from './settings.mjs'

const { STAGING_GATEWAYS = '', STAGING_STORE = 'redis', STAGING_BREAK, STAGING_MEND } = process.env
const outageMs = setting('STAGING_SECONDS', 30, 5) * 1_000
/** Between two requests of a kind at a gateway. */
const everyMs = 100
const calmMs = 5_000
const recovery = 5_000

/** The statuses that a request may get while the store is down, and the time within which it gets them. */
const bars = {
  redis: { paying: [200], free: [200, 429], soon: 1_000 },
  postgres: { paying: [200, 503], free: [200, 429, 503], soon: 2_000 },
}
const well = { paying: [200], free: [200, 429] }

/** @type {import('./main.mjs').Drill} */
export async function staging({ say, expect }) {
  const bar = bars[STAGING_STORE]
  if (bar === undefined) throw new Error(`STAGING_STORE is ${Object.keys(bars).join(' or ')}`)
  if (STAGING_GATEWAYS === '') throw new Error('STAGING_GATEWAYS names the gateways, separated by commas')
  const kinds = { paying: kindOf('PAYING'), free: kindOf('FREE') }
  const gateways = STAGING_GATEWAYS.split(',').map(url => new URL(url.trim()))
  const load = startLoad(gateways, kinds)
  try {
    await sleep(calmMs)
    const before = load.take()
    expect(
      'all is well before',
      before.length > 0 && before.every(({ kind, status }) => well[kind].includes(status)),
      told(before),
    )
    await play(say, STAGING_BREAK, `break ${STAGING_STORE} now`)
    await sleep(outageMs)
    await play(say, STAGING_MEND, `bring ${STAGING_STORE} back now`)
    const during = load.take()
    await sleep(recovery)
    const recovering = load.take()
    await sleep(calmMs)
    const after = load.take()
    const all = [...during, ...recovering]
    for (const kind of ['paying', 'free']) {
      const mine = all.filter(answer => answer.kind === kind)
      const slowest = Math.max(0, ...mine.map(({ tookMs }) => tookMs))
      expect(
        `${kind} users: nothing but ${bar[kind].join(' and ')}, within ${bar.soon / 1_000} s`,
        mine.length > 0 && slowest < bar.soon && mine.every(({ status }) => bar[kind].includes(status)),
        `${told(mine)}; ${slowest.toFixed(0)} ms at most`,
      )
    }
    expect(
      'all is well within 5 s of its return',
      after.length > 0 && after.every(({ kind, status }) => well[kind].includes(status)),
      told(after),
    )
  } finally {
    await load.stop()
  }
}

/** @param {string | undefined} command for the shell; where there is none somebody does it by hand @param {string} what */
async function play(say, command, what) {
  if (command === undefined) {
    say(`${what}: by hand, you have 10 s`)
    await sleep(10_000)
    return
  }
  say(command)
  await promisify(exec)(command)
}

/** @param {string} name */
function kindOf(name) {
  const { [`STAGING_${name}_PATH`]: path, [`STAGING_${name}_TOKEN`]: token } = process.env
  if (!path || !token) throw new Error(`STAGING_${name}_PATH and STAGING_${name}_TOKEN are needed`)
  // A JWT has three parts; an API key is one word.
  const isJwt = token.split('.').length === 3
  return { path, headers: isJwt ? { authorization: `Bearer ${token}` } : { 'x-api-key': token } }
}

/** Each kind at each gateway, one request after the other, at a fixed rate as long as it answers in time. */
function startLoad(gateways, kinds) {
  const agents = {
    'http:': new HttpAgent({ keepAlive: true }),
    'https:': new HttpsAgent({ keepAlive: true }),
  }
  const answers = []
  let isOver = false
  const ask = (gateway, { path, headers }) =>
    new Promise(resolve => {
      const send = gateway.protocol === 'https:' ? https : http
      send(new URL(path, gateway), { headers, agent: agents[gateway.protocol], timeout: 30_000 })
        .on('response', answer => {
          answer.on('error', () => resolve(0)).on('end', () => resolve(answer.statusCode))
          answer.resume()
        })
        .on('timeout', function onTimeout() {
          this.destroy()
        })
        .on('error', () => resolve(0))
        .end()
    })
  const running = gateways.flatMap(gateway =>
    Object.entries(kinds).map(async ([kind, what]) => {
      while (!isOver) {
        const begun = performance.now()
        const status = await ask(gateway, what)
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

/** Counted by kind and status; 0 is no answer. */
function told(answers) {
  const counts = new Map()
  for (const { kind, status } of answers)
    counts.set(`${kind} ${status}`, (counts.get(`${kind} ${status}`) ?? 0) + 1)
  return [...counts].map(([what, count]) => `${what}: ${count}`).join(', ')
}
