// Loaded into a gateway: at SIGUSR2 it collects its garbage and writes down what is left, in bytes, and what it waits for.
import { writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

process.on('SIGUSR2', () => {
  collect()
  collect()
  const counts = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  const { heapUsed } = process.memoryUsage()
  writeFileSync(`${process.env.HEAP_FILE}.${process.pid}`, JSON.stringify({ heapUsed, counts }))
})
