// A 1 GiB download and a 512 MiB upload arrive intact, and the gateway holds next to nothing of them.
import { peakDuring, residentOf } from './memory.mjs'
import { digest, MiB, noise } from './noise.mjs'
import { ask, askJson, startStage } from './stage.mjs'

/** @type {import('./main.mjs').Drill} */
export async function transfer({ say, expect }) {
  const stage = await startStage()
  const { port, pids } = stage.gateway
  const [pid = 0] = pids
  const download = async bytes => digest(await ask(port, `/public/noise?bytes=${bytes}`))
  const upload = (bytes, length) => askJson(port, '/public/digest', { body: noise(bytes), length })
  try {
    const atStart = residentOf(pid)
    // The code is compiled and the heap has its working size after this; what comes then is growth by the bodies.
    await download(64 * MiB)
    await upload(64 * MiB)
    say(`warmed up with 64 MiB each way: memory ${atStart.toFixed(0)} → ${residentOf(pid).toFixed(0)} MiB`)
    for (const [name, bytes, run] of [
      ['download of 1 GiB', 1024 * MiB, () => download(1024 * MiB)],
      ['upload of 512 MiB, declared', 512 * MiB, () => upload(512 * MiB, 512 * MiB)],
      ['upload of 512 MiB, chunked', 512 * MiB, () => upload(512 * MiB)],
    ]) {
      const expected = await digest(noise(bytes))
      const begun = performance.now()
      const { before, peak, growth, result } = await peakDuring(pid, run)
      const rate = bytes / MiB / ((performance.now() - begun) / 1000)
      say(`${name}: ${rate.toFixed(0)} MiB/s, memory ${before.toFixed(0)} → ${peak.toFixed(0)} MiB`)
      expect(`${name}: SHA-256 as sent`, result.sha256 === expected.sha256, result.sha256)
      expect(`${name}: memory grows by less than 64 MiB`, growth < 64, `${growth.toFixed(1)} MiB`)
    }
  } finally {
    await stage.stop()
  }
}
