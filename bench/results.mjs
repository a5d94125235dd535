// What a run leaves behind: its results as JSON, as a table and as a chart.
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { chart } from './chart.mjs'
import { tables } from './tables.mjs'

/**
 * @typedef {object} Results
 * @property {string[]} notes for people to read
 * @property {Record<string, unknown>} settings
 * @property {import('./report.mjs').Reported[]} rows
 * @property {Record<string, string>} absent rows that could not take part, and why
 * @property {Record<string, string>} failed rows that answered wrongly, and how
 * @property {import('./bars.mjs').Judged[]} bars
 */

/**
 * @param {Results} results
 * @param {string} base
 * @returns {string} the folder
 */
export function writeResults(results, base) {
  const folder = fileURLToPath(new URL('results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}results.json`, `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(`${folder}results.md`, `${tables(results)}\n`)
  writeFileSync(
    `${folder}chart.svg`,
    chart(results.rows, `CPU per request against bare ${base} (median, quartiles; less is better)`),
  )
  return folder
}

/** The machine, in a line. */
export function machine() {
  const [first] = cpus()
  return `${cpus().length} × ${first?.model.trim() ?? 'unknown'}, Linux, Node ${process.versions.node}`
}
