// 48 MiB to a reader at 1 MiB/s: the gateway's memory stays flat, and the upstream is held back.
import { setTimeout as sleep } from 'node:timers/promises'
import { peakDuring, residentOf } from './memory.mjs'
import { MiB } from './noise.mjs'
import { ask, askJson, startStage } from './stage.mjs'

const total = 48 * MiB
/** What the sockets' buffers of four ends may hold (tcp_rmem and tcp_wmem: up to 6 and 4 MiB each). */
const buffers = 20 * MiB
/** MiB. Chunks that were passed on are memory until they are collected; what was read ahead would come on top. */
const mostGrowth = 32

/** @type {import('./main.mjs').Drill} */
export async function slowReader({ say, expect }) {
  const stage = await startStage()
  const { port, pids } = stage.gateway
  const [pid = 0] = pids
  const atStart = residentOf(pid)
  const [{ port: behind } = { port: 0 }] = stage.upstreams
  try {
    // Small ones: the system widens the window of a connection that was fast once, and keeps it wide.
    for (let i = 0; i < 500; i += 1) await (await ask(port, '/public/small')).toArray()
    say(`warmed up: memory ${atStart.toFixed(0)} → ${residentOf(pid).toFixed(0)} MiB; 48 s follow`)
    let furthestAhead = 0
    const { growth, result } = await peakDuring(pid, async () => {
      const answer = await ask(port, `/public/noise?bytes=${total}`)
      let read = 0
      const begun = performance.now()
      for await (const chunk of answer) {
        read += chunk.length
        if (read % MiB < chunk.length) {
          const { written } = await askJson(behind, '/state')
          furthestAhead = Math.max(furthestAhead, written - read)
        }
        const due = begun + (read / MiB) * 1000
        await sleep(Math.max(0, due - performance.now()))
      }
      return { read, seconds: (performance.now() - begun) / 1000 }
    })
    expect(
      'all 48 MiB arrive',
      result.read === total,
      `${result.read} bytes in ${result.seconds.toFixed(1)} s`,
    )
    expect(`memory grows by less than ${mostGrowth} MiB`, growth < mostGrowth, `${growth.toFixed(1)} MiB`)
    const ahead = `${(furthestAhead / MiB).toFixed(1)} MiB ahead at most`
    expect('the upstream is held back', furthestAhead < buffers, ahead)
  } finally {
    await stage.stop()
  }
}
