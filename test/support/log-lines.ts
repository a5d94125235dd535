// A process that logs as a worker does: `node log-lines.js NAME COUNT START [exit]` writes COUNT lines, as fast as it can,
// from START on (milliseconds since the epoch). With `exit` it then calls `process.exit`.
import { openLog } from '../../src/observability/stdout.ts'

const [, , name = '', count = '0', start = '0', end] = process.argv
const logger = await openLog(process.stdout, { level: 'info', requests: true }, { isShared: true })
let number = 0

function writeSome(): void {
  for (let some = 0; some < 500 && number < Number(count); some++, number++) {
    // Some 200 to 700 bytes, and now and then one as long as a fault's with its stack.
    const length = number % 100 === 0 ? 3_500 : 100 + ((number * 37) % 500)
    logger.info({ name, number, fill: name.repeat(length) }, 'said')
  }
  if (number < Number(count)) setImmediate(writeSome)
  else if (end === 'exit') process.exit(0)
}

setTimeout(writeSome, Number(start) - Date.now())
