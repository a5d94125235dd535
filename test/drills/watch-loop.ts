// Loaded into a gateway. Records when its event loop was blocked longer than 20 ms, as `from to` in nanoseconds.
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
