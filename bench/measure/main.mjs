// What the gateway and its stores carry, measured by the part: `npm run measure`, or `npm run measure -- memory`.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { runAndCleanUp } from '../cleanup.mjs'
import { crypto } from './crypto.mjs'
import { growth } from './growth.mjs'
import { heartbeats } from './heartbeats.mjs'
import { memory } from './memory.mjs'
import { processes } from './processes.mjs'
import { starting } from './starting.mjs'
import { statements } from './statements.mjs'
import { stores } from './stores.mjs'

/**
 * @typedef {object} Means
 * @property {(text: string) => void} say
 * @property {(head: string[], rows: (string | number)[][]) => void} table
 * @property {string | undefined} before another build's command line, to compare with
 * @typedef {(means: Means) => Promise<void>} Part
 */

/** @type {Record<string, Part>} */
const parts = { memory, processes, crypto, statements, stores, heartbeats, growth, starting }

const { values, positionals: asked } = parseArgs({
  options: { before: { type: 'string' } },
  allowPositionals: true,
})
const before = values.before === undefined ? undefined : resolve(values.before)
const unknown = asked.filter(name => !(name in parts))
if (unknown.length > 0) {
  process.stderr.write(`nothing called ${unknown.join(', ')}; there are ${Object.keys(parts).join(', ')}\n`)
  process.exit(2)
}

const say = text => process.stdout.write(`${text}\n`)

/** Columns of words first, then numbers; good Markdown too. */
function table(head, rows) {
  const lines = [head, ...rows].map(row =>
    row.map(cell => (typeof cell === 'number' ? cell.toLocaleString('en') : cell)),
  )
  const widths = head.map((_, at) => Math.max(3, ...lines.map(line => line[at].length)))
  const isNumber = head.map((_, at) => rows.every(row => typeof row[at] === 'number'))
  const pad = (cell, at) => (isNumber[at] ? cell.padStart(widths[at]) : cell.padEnd(widths[at]))
  const rule = widths.map((width, at) => (isNumber[at] ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)))
  const [first, ...others] = lines.map(line => `| ${line.map(pad).join(' | ')} |`)
  say([first, `| ${rule.join(' | ')} |`, ...others].join('\n'))
}

await runAndCleanUp(async () => {
  for (const [name, part] of Object.entries(parts)) {
    if (asked.length > 0 && !asked.includes(name)) continue
    say(`\n## ${name}\n`)
    await part({ say, table, before })
  }
})
