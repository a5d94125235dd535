// Drills load this module into a gateway. On SIGUSR2, the gateway collects garbage. It then writes its heap size and
// the number of its resources to a file.
import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export interface Heap {
  /** The heap in bytes. */
  readonly heapUsed: number
  /** The number of resources that keep the event loop alive, by kind. */
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
