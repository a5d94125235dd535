// 10,000 idle connections and 500 slowloris sockets: others are served, memory stays bounded, dribblers are cut.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startLoad } from './load.mjs'
import { peakDuring } from './memory.mjs'
import { startStage } from './stage.mjs'
import { post } from './subjects.mjs'

const idle = 10_000
const dribblers = 500
/** Seconds: `server.timeouts.headers`, and what Node takes to look and we to half-close. */
const headers = 10
const slack = 2.5

/** @type {import('./main.mjs').Drill} */
export async function crowd({ say, expect }) {
  const files = openFilesAllowed()
  if (files < idle + 2 * dribblers + 500) throw new Error(`only ${files} open files are allowed (ulimit -Hn)`)
  const stage = await startStage({ server: `, timeouts: { headers: ${headers}s, keep_alive: 5m }` })
  const { port, pids } = stage.gateway
  const account = { email: 'guarded@drill.test', password: 'correct horse battery' }
  await post(port, 'register', account)
  const { access_token: token } = (await post(port, 'login', account)).body
  const program = fileURLToPath(new URL('serve-crowd.mjs', import.meta.url))
  const child = fork(program, [port, idle, dribblers].map(String))
  try {
    const { peak, before } = await peakDuring(pids[0] ?? 0, async () => {
      await once(child, 'message')
      say(`${idle} idle connections and ${dribblers} dribblers are there`)
      const { load, p50, p99, worst } = await lightLoad(port, token, say)
      const state = await stateOf(child)
      say(
        `others: ${load.done} answered, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, worst ${worst.toFixed(1)} ms`,
      )
      expect(
        'every other client is served, with a token on a guarded route',
        load.failures.length === 0,
        `${load.failures.length} failed ${[...new Set(load.failures)]}`,
      )
      expect('p99 of the others is below 250 ms', p99 < 250, `${p99.toFixed(1)} ms`)
      expect('no idle connection is lost', state.open === idle && state.closed === 0, `${state.open} open`)
      const longest = state.longest / 1000
      expect(
        `dribblers are cut within ${headers} s (+${slack})`,
        state.cut >= dribblers && longest < headers + slack,
        `${state.cut} cut, the longest lived ${longest.toFixed(1)} s`,
      )
    })
    say(`memory ${before.toFixed(0)} → ${peak.toFixed(0)} MiB`)
    expect('memory stays below 600 MiB', peak < 600, `${peak.toFixed(0)} MiB`)
  } finally {
    child.kill('SIGKILL')
    await stage.stop()
  }
}

/** Others' view, for as long as the dribblers are cut twice; anew where the machine stalled this process too. */
async function lightLoad(port, token, say) {
  for (let attempt = 1; ; attempt += 1) {
    const guarded = { path: '/guarded/small', headers: { authorization: `Bearer ${token}` } }
    const load = startLoad(port, { perSecond: 200, ...guarded })
    await sleep(2 * headers * 1000 + 2_000)
    const { ownStall, ...times } = await load.stop()
    if (ownStall < 100 || attempt === 3) return { load, ...times }
    say(`the load itself stood still for ${ownStall.toFixed(0)} ms: the machine is busy; measuring again`)
  }
}

async function stateOf(child) {
  child.send('state')
  const [state] = await once(child, 'message')
  return state
}

/** Node raises its own limit to the hard one at start. */
function openFilesAllowed() {
  const [, limit] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit)
}
