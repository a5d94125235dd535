// A process that tries to lock a data folder. It prints `held` or the error, and runs until its input ends or it is
// killed.
import { once } from 'node:events'
import { DataDirLocked, lockDataDir } from '../../../src/storage/pglite/data-dir-lock.ts'

const [dir = '', when = ''] = process.argv.slice(2)

// In a test of a race, all processes start first. Then a line of input makes them lock the folder at the same moment.
if (when === 'on-line') {
  process.stdout.write('ready\n')
  await once(process.stdin, 'data')
}
try {
  await lockDataDir(dir)
  process.stdout.write('held\n')
} catch (error) {
  if (!(error instanceof DataDirLocked)) throw error
  process.stdout.write(`${JSON.stringify({ pid: error.pid, message: error.message })}\n`)
}
process.stdin.resume()
