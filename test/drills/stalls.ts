// When the event loops of running gateways stood still. Each process loads watch-loop, which writes it down.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** On the clock that all processes of a machine share, in nanoseconds. */
export interface Stall {
  readonly from: bigint
  readonly to: bigint
}

export interface Stalls {
  /** The environment that the gateways are started with. */
  readonly env: Record<string, string>
  /** Stalls of more than 20 ms of a gateway of one process. */
  of(gateway: { readonly pid: number }): Stall[]
}

/** @param folder where the processes write */
export function watchStalls(folder: string): Stalls {
  const file = join(folder, 'loop')
  return {
    env: {
      NODE_OPTIONS: `--import=${new URL('./watch-loop.js', import.meta.url).href}`,
      LOOP_DELAYS: file,
    },
    of({ pid }) {
      const written = `${file}.${pid}`
      if (!existsSync(written)) return []
      const lines = readFileSync(written, 'utf8').trim().split('\n')
      return lines.map(line => {
        const [from = 0n, to = 0n] = line.split(' ').map(BigInt)
        return { from, to }
      })
    },
  }
}

/** @returns milliseconds of the longest stall that touches the time from `begin` to `end` */
export function longestStall(stalls: readonly Stall[], begin: bigint, end: bigint): number {
  const within = stalls.filter(({ from, to }) => to > begin && from < end)
  return Math.max(0, ...within.map(({ from, to }) => Number(to - from) / 1e6))
}
