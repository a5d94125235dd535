// A process that logs like a worker. `node log-lines.js NAME COUNT START [exit]` writes COUNT lines as fast as
// possible, starting at START (milliseconds since the epoch). With `exit` it then calls `process.exit`.
import { openLog } from '../../src/observability/stdout.ts'

const [, , name = '', count = '0', start = '0', end] = process.argv
const logger = await openLog(process.stdout, { level: 'info', requests: true }, { isShared: true })
let number = 0

function writeSome(): void {
  for (let some = 0; some < 500 && number < Number(count); some++, number++) {
    // Most lines have 200 to 700 bytes. Every hundredth line is as long as a line with the stack of an error.
    const length = number % 100 === 0 ? 3_500 : 100 + ((number * 37) % 500)
    logger.info({ name, number, fill: name.repeat(length) }, 'said')
  }
  if (number < Number(count)) setImmediate(writeSome)
  else if (end === 'exit') process.exit(0)
}

setTimeout(writeSome, Number(start) - Date.now())
