// The gateway passes event streams on without delay. The first byte and every event arrive within 50 ms.
import { ask, startStage } from './stage.ts'
import type { Watch } from './watch.ts'

export async function events({ say, expect }: Watch): Promise<void> {
  const stage = await startStage()
  const { port } = stage.gateway
  try {
    await delays(port, 5, 10)
    const inOne = await delays(port, 50, 100)
    const firsts: number[] = []
    for (let i = 0; i < 50; i += 1) firsts.push(...(await delays(port, 1, 0)))
    for (const [name, all] of [
      ['50 events of one stream', inOne],
      ['first bytes of 50 streams', firsts],
    ] as const) {
      const sorted = all.toSorted((a, b) => a - b)
      say(`${name}: median ${sorted[25]?.toFixed(2)} ms, maximum ${sorted.at(-1)?.toFixed(2)} ms`)
      expect(
        `${name} arrive within 50 ms`,
        all.length === 50 && (sorted.at(-1) ?? 99) < 50,
        `${sorted.at(-1)?.toFixed(2)} ms`,
      )
    }
  } finally {
    await stage.stop()
  }
}

/** Returns the delay of each event in milliseconds. */
async function delays(port: number, count: number, every: number): Promise<number[]> {
  const all: number[] = []
  let rest = ''
  for await (const chunk of await ask(port, `/public/events?count=${count}&every=${every}`)) {
    const now = process.hrtime.bigint()
    const parts = (rest + chunk).split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) all.push(Number(now - BigInt(part.slice('data: '.length))) / 1e6)
  }
  return all
}
