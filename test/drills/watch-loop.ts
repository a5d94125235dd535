// Drills load this module into a gateway. If the event loop was blocked for more than 20 ms, the module appends a line
// to a file. The line `FROM TO` contains the times when the blocked period started and ended, in nanoseconds.
import { appendFileSync } from 'node:fs'

const file = `${process.env.LOOP_DELAYS}.${process.pid}`
const interval = 5
const longest = 20_000_000n

let last = process.hrtime.bigint()
setInterval(() => {
  const now = process.hrtime.bigint()
  if (now - last > longest + BigInt(interval) * 1_000_000n) appendFileSync(file, `${last} ${now}\n`)
  last = now
}, interval).unref()
