// Sends a steady load from a separate process, so that the drill does not delay the load. A message from the drill
// starts the load for a number of seconds. After that, the process reports the measured latencies.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Latencies, startLoad } from './load.ts'

export interface Window {
  readonly port: number
  readonly perSecond: number
  readonly seconds: number
  readonly headers?: Readonly<Record<string, string>>
}

export interface WindowResult extends Omit<Latencies, 'p50'> {
  readonly done: number
  readonly failures: readonly string[]
}

process.on('message', async ({ port, perSecond, seconds, headers = {} }: Window) => {
  const load = startLoad(port, { perSecond, headers })
  await sleep(seconds * 1_000)
  const { worst, p99, ownStall } = await load.stop()
  process.send?.({ done: load.done, failures: load.failures, worst, p99, ownStall } satisfies WindowResult)
})
process.once('disconnect', () => process.exit())
