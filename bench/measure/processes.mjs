// What a gateway's processes take of memory: one alone, and a primary with two workers, idle and under load.
import { setTimeout as sleep } from 'node:timers/promises'
import { bearer, coursePath } from '../contender.mjs'
import { startGateway } from '../contenders/gateway.mjs'
import { peakMemory } from '../costs.mjs'
import { residentOf } from '../drills/memory.mjs'
import { startProgram } from '../processes.mjs'
import { startLoad } from '../rounds.mjs'
import { openServices } from '../services.mjs'
import { round } from './own-stores.mjs'

/** Seconds. */
const idle = 10
const slice = 5
const slices = 8

/** @type {import('./main.mjs').Part} */
export async function processes({ say, table }) {
  const services = await openServices()
  if (services === undefined) throw new Error('this needs a Postgres and a Redis')
  const upstream = await startProgram('contenders/serve-upstream.mjs')
  const rows = []
  for (const workers of [1, 2]) {
    const { running, callers } = await startGateway({ upstream, services }, { workers })
    const names = workers === 1 ? ['alone'] : ['primary', 'worker', 'worker']
    await sleep(idle * 1_000)
    const before = running.pids.map(residentOf)
    const load = startLoad()
    for (let done = 0; done < slices; done += 1) {
      await load.run({
        ...running,
        questions: [{ path: coursePath('guarded'), headers: bearer(callers.premium.token) }],
        status: 200,
        connections: 48,
        warmUp: 0,
        time: slice * 1_000,
      })
    }
    for (const [at, pid] of running.pids.entries()) {
      const after = [residentOf(pid), peakMemory([pid])].map(round)
      rows.push([names[at] ?? '', round(before[at] ?? 0), ...after])
    }
    await load.stop()
    await running.stop()
  }
  table(['process', 'MiB idle', 'MiB after load', 'MiB at its peak'], rows)
  say(
    `\nIdle: ${idle} s after four users have registered. Load: ${slice * slices} s of one user's guarded requests over 48 connections, as many as are answered.`,
  )
}
