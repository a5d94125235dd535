// Loaded into a gateway: at SIGUSR2 it collects its garbage and writes to a file what is left.
import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export interface Heap {
  /** Bytes. */
  readonly heapUsed: number
  /** Resources that keep the event loop alive, by their kind. */
  readonly counts: Readonly<Record<string, number>>
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

process.on('SIGUSR2', () => {
  collect()
  collect()
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  const { heapUsed } = process.memoryUsage()
  const heap: Heap = { heapUsed, counts }
  writeFileSync(`${process.env.HEAP_FILE}.${process.pid}`, JSON.stringify(heap))
})
