// Measures the heaps of running gateways after a garbage collection. Each process loads heap-on-signal, which reacts to
// SIGUSR2.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Heap {
  /** The heap in bytes. */
  readonly heapUsed: number
  /** The number of resources that keep the event loop alive, by kind. */
  readonly counts: Readonly<Record<string, number>>
}

export interface Heaps {
  /** The environment variables that a gateway needs so that its heap can be measured. */
  readonly env: Record<string, string>
  /** Collects garbage in each process and returns the heaps in the order of `pids`. */
  of(pids: readonly number[]): Promise<Heap[]>
  /** Collects garbage in each process, and returns the sum of the heaps in bytes. */
  sumOf(pids: readonly number[]): Promise<number>
}

/** @param folder the folder to which the processes write their files */
export function watchHeaps(folder: string): Heaps {
  const file = join(folder, 'heap')

  async function heapOf(pid: number): Promise<Heap> {
    writeFileSync(`${file}.${pid}`, '')
    process.kill(pid, 'SIGUSR2')
    for (;;) {
      await sleep(50)
      const text = readFileSync(`${file}.${pid}`, 'utf8')
      if (text !== '') return JSON.parse(text) as Heap
    }
  }

  async function of(pids: readonly number[]): Promise<Heap[]> {
    const heaps = []
    for (const pid of pids) heaps.push(await heapOf(pid))
    return heaps
  }

  return {
    env: {
      NODE_OPTIONS: `--import=${new URL('./heap-on-signal.js', import.meta.url).href}`,
      HEAP_FILE: file,
    },
    of,
    sumOf: async pids => (await of(pids)).reduce((sum, { heapUsed }) => sum + heapUsed, 0),
  }
}
