// A client reads 48 MiB at 1 MiB/s. The gateway's memory hardly grows, because the gateway slows the upstream down.
import { setTimeout as sleep } from 'node:timers/promises'
import { peakDuring, residentOf } from './memory.ts'
import { MiB } from './noise.ts'
import { ask, askJson, startStage } from './stage.ts'
import type { Watch } from './watch.ts'

const total = 48 * MiB
/**
 * The number of bytes that the socket buffers of both connections can hold together (tcp_rmem: up to 6 MiB, tcp_wmem:
 * up to 4 MiB).
 */
const buffers = 20 * MiB
/**
 * The maximum growth of the memory in MiB. Some growth is normal, because chunks use memory until the next garbage
 * collection. If the gateway buffered the whole response, its memory would grow by 48 MiB.
 */
const mostGrowth = 32

export async function slowReader({ say, expect }: Watch): Promise<void> {
  const stage = await startStage()
  const { port, pid } = stage.gateway
  const atStart = residentOf(pid)
  const behind = stage.upstreams[0]?.port ?? 0
  try {
    // During the warm-up, the drill requests only small responses. After large responses, the operating system would
    // use larger buffers for these connections.
    for (let i = 0; i < 500; i += 1) await (await ask(port, '/public/small')).toArray()
    say(
      `after the warm-up, memory grew from ${atStart.toFixed(0)} to ${residentOf(pid).toFixed(0)} MiB; 48 s follow`,
    )
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
    const ahead = `at most ${(furthestAhead / MiB).toFixed(1)} MiB ahead`
    expect('the upstream is slowed down to the speed of the client', furthestAhead < buffers, ahead)
  } finally {
    await stage.stop()
  }
}
