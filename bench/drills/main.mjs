// The drills: the built program under loads that a test suite has no time for. Exits 1 when a bar is missed.
import { cardinality } from './cardinality.mjs'
import { coldStart } from './cold-start.mjs'
import { connectionAge } from './connection-age.mjs'
import { crowd } from './crowd.mjs'
import { events } from './events.mjs'
import { failover } from './failover.mjs'
import { largeFiles } from './large-files.mjs'
import { names } from './names.mjs'
import { reload } from './reload.mjs'
import { revocation } from './revocation.mjs'
import { rotation } from './rotation.mjs'
import { slowReader } from './slow-reader.mjs'
import { transfer } from './transfer.mjs'
import { webhooks } from './webhooks.mjs'

/**
 * @typedef {object} Watch
 * @property {(text: string) => void} say
 * @property {(bar: string, isMet: boolean, measured: string) => void} expect
 * @typedef {(watch: Watch) => Promise<void>} Drill
 */

/** @type {Record<string, Drill>} */
const drills = {
  transfer,
  'slow-reader': slowReader,
  events,
  crowd,
  failover,
  'connection-age': connectionAge,
  names,
  webhooks,
  revocation,
  rotation,
  reload,
  'large-files': largeFiles,
  'cold-start': coldStart,
  cardinality,
}

const asked = process.argv.slice(2)
const unknown = asked.filter(name => !(name in drills))
if (unknown.length > 0) {
  process.stderr.write(`no drill ${unknown.join(', ')}; there are ${Object.keys(drills).join(', ')}\n`)
  process.exit(2)
}

let missed = 0
for (const [name, drill] of Object.entries(drills)) {
  if (asked.length > 0 && !asked.includes(name)) continue
  process.stdout.write(`\n${name}\n`)
  const expect = (bar, isMet, measured) => {
    if (!isMet) missed += 1
    process.stdout.write(`  ${isMet ? 'ok    ' : 'MISSED'}  ${bar}: ${measured}\n`)
  }
  try {
    await drill({ say: text => process.stdout.write(`          ${text}\n`), expect })
  } catch (error) {
    expect('runs to its end', false, error.stack ?? String(error))
  }
}
process.stdout.write(missed === 0 ? '\nevery bar is met\n' : `\n${missed} missed\n`)
process.exit(missed === 0 ? 0 : 1)
