// 10,000 clients keep idle connections, and 500 clients send their request heads slowly. Other clients are served,
// memory stays bounded, and the connections of slow clients are closed.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { password } from '../support/client.ts'
import { bearer } from './accounts.ts'
import { type Latencies, type Load, startLoad } from './load.ts'
import { peakDuring } from './memory.ts'
import type { CrowdState } from './serve-crowd.ts'
import { startStage } from './stage.ts'
import { post } from './subjects.ts'
import type { Watch } from './watch.ts'

const idle = 10_000
const dribblers = 500
/**
 * `headers` is `server.timeouts.headers` in seconds. `slack` is the additional time in seconds that Node needs to
 * notice the timeout and to close the connection.
 */
const headers = 10
const slack = 2.5

export async function crowd({ say, expect }: Watch): Promise<void> {
  const files = openFilesAllowed()
  if (files < idle + 2 * dribblers + 500)
    throw new Error(`the limit of open files is only ${files}. Raise it (ulimit -Hn).`)
  const stage = await startStage({ server: `, timeouts: { headers: ${headers}s, keep_alive: 5m }` })
  const { port, pid } = stage.gateway
  const account = { email: 'guarded@drill.test', password }
  await post(port, 'register', account)
  const { body: pair } = await post(port, 'login', account)
  const guarded = { path: '/guarded/small', headers: bearer(String(pair.access_token)) }
  const program = fileURLToPath(new URL('./serve-crowd.js', import.meta.url))
  const child = fork(program, [port, idle, dribblers].map(String))
  try {
    const { peak, before } = await peakDuring(pid, async () => {
      await once(child, 'message')
      say(`${idle} idle connections and ${dribblers} slow heads are open`)
      const { load, p50, p99, worst } = await lightLoad(port, guarded, say)
      const state = await stateOf(child)
      say(
        `other clients: ${load.done} responses, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, maximum ${worst.toFixed(1)} ms`,
      )
      expect(
        'every other client with a token is served on a guarded route',
        load.failures.length === 0,
        `${load.failures.length} failed ${[...new Set(load.failures)]}`,
      )
      expect('p99 of the other clients is below 250 ms', p99 < 250, `${p99.toFixed(1)} ms`)
      expect('no idle connection is lost', state.open === idle && state.closed === 0, `${state.open} open`)
      const longest = state.longest / 1000
      expect(
        `slow heads are cut within ${headers} s (+${slack} s)`,
        state.cut >= dribblers && longest < headers + slack,
        `${state.cut} cut, the longest after ${longest.toFixed(1)} s`,
      )
    })
    say(`memory ${before.toFixed(0)} MiB before, ${peak.toFixed(0)} MiB at its peak`)
    expect('memory stays below 600 MiB', peak < 600, `${peak.toFixed(0)} MiB`)
  } finally {
    child.kill('SIGKILL')
    await stage.stop()
  }
}

interface LightLoad extends Latencies {
  readonly load: Load
}

/**
 * Sends requests for 2 s longer than two header timeouts. If this process was blocked during the load, repeats the
 * load, at most twice.
 */
async function lightLoad(
  port: number,
  guarded: { path: string; headers: { authorization: string } },
  say: Watch['say'],
): Promise<LightLoad> {
  for (let attempt = 1; ; attempt += 1) {
    const load = startLoad(port, { perSecond: 200, ...guarded })
    await sleep(2 * headers * 1000 + 2_000)
    const latencies = await load.stop()
    const { ownStall } = latencies
    if (ownStall < 100 || attempt === 3) return { load, ...latencies }
    say(`the machine is busy (the load process was blocked for ${ownStall.toFixed(0)} ms); measuring again`)
  }
}

async function stateOf(child: ChildProcess): Promise<CrowdState> {
  child.send('state')
  return (await once(child, 'message'))[0]
}

/**
 * Returns the maximum number of open files of this process. When Node starts, it raises the soft limit to the hard
 * limit.
 */
function openFilesAllowed(): number {
  const [, limit] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit)
}
