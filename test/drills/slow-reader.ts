// 48 MiB to a reader at 1 MiB/s: the gateway's memory stays flat, and the upstream is held back.
import { setTimeout as sleep } from 'node:timers/promises'
import { peakDuring, residentOf } from './memory.ts'
import { MiB } from './noise.ts'
import { ask, askJson, startStage } from './stage.ts'
import type { Watch } from './watch.ts'

const total = 48 * MiB
/** Bytes in the socket buffers of four ends (tcp_rmem and tcp_wmem: up to 6 and 4 MiB each). */
const buffers = 20 * MiB
/** MiB. Chunks that were passed on are memory until they are collected; chunks read ahead would be more. */
const mostGrowth = 32

export async function slowReader({ say, expect }: Watch): Promise<void> {
  const stage = await startStage()
  const { port, pid } = stage.gateway
  const atStart = residentOf(pid)
  const behind = stage.upstreams[0]?.port ?? 0
  try {
    // The responses are small because the system keeps the window of a connection wide that was fast once.
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
          const { written } = await askJson<{ written: number }>(behind, '/state')
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
