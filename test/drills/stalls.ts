// Reads at which times the event loops of gateways were blocked. Each gateway process loads watch-loop, which records
// these times.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A period in which the event loop was blocked. Both times are nanoseconds of the system's monotonic clock. */
export interface Stall {
  readonly from: bigint
  readonly to: bigint
}

export interface Stalls {
  /** The environment variables for the gateways. */
  readonly env: Record<string, string>
  /** Returns the stalls that lasted longer than 20 ms. The gateway must have only one process. */
  of(gateway: { readonly pid: number }): Stall[]
}

/** @param folder the folder to which the gateway processes write their files */
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

/** @returns the duration in milliseconds of the longest stall that overlaps the time from `begin` to `end` */
export function longestStall(stalls: readonly Stall[], begin: bigint, end: bigint): number {
  const within = stalls.filter(({ from, to }) => to > begin && from < end)
  return Math.max(0, ...within.map(({ from, to }) => Number(to - from) / 1e6))
}
