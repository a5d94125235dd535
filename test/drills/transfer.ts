// A download of 1 GiB and two uploads of 512 MiB arrive intact. During each, the memory of the gateway grows by less
// than 64 MiB.
import { peakDuring, residentOf } from './memory.ts'
import { type Digest, digest, MiB, noise } from './noise.ts'
import { ask, askJson, startStage } from './stage.ts'
import type { Watch } from './watch.ts'

export async function transfer({ say, expect }: Watch): Promise<void> {
  const stage = await startStage()
  const { port, pid } = stage.gateway
  const download = async (bytes: number) => digest(await ask(port, `/public/noise?bytes=${bytes}`))
  const uploadChunked = (bytes: number) => askJson<Digest>(port, '/public/digest', { body: noise(bytes) })
  const upload = (bytes: number) =>
    askJson<Digest>(port, '/public/digest', { body: noise(bytes), length: bytes })
  try {
    const atStart = residentOf(pid)
    // After this warm-up, V8 has compiled the code, and the heap has its usual size. So later growth can only come from
    // request and response bodies.
    await download(64 * MiB)
    await uploadChunked(64 * MiB)
    say(
      `warm-up with 64 MiB each way: memory grew from ${atStart.toFixed(0)} to ${residentOf(pid).toFixed(0)} MiB`,
    )
    for (const [name, bytes, run] of [
      ['download of 1 GiB', 1024 * MiB, download],
      ['upload of 512 MiB, declared', 512 * MiB, upload],
      ['upload of 512 MiB, chunked', 512 * MiB, uploadChunked],
    ] as const) {
      const expected = await digest(noise(bytes))
      const begun = performance.now()
      const { before, peak, growth, result } = await peakDuring(pid, () => run(bytes))
      const rate = bytes / MiB / ((performance.now() - begun) / 1000)
      say(
        `${name}: ${rate.toFixed(0)} MiB/s, memory ${before.toFixed(0)} MiB before, ${peak.toFixed(0)} MiB at its peak`,
      )
      expect(`${name}: the SHA-256 is unchanged`, result.sha256 === expected.sha256, result.sha256)
      expect(`${name}: memory grows by less than 64 MiB`, growth < 64, `${growth.toFixed(1)} MiB`)
    }
  } finally {
    await stage.stop()
  }
}
