// What has to be shown: a cost of one row against another's, and whether it is low enough.

import { dispatch, httpProxy } from './contenders/bare.mjs'
import { caddy } from './contenders/caddy.mjs'
import { alone, byTwo, byTwoUnhurried, inSession, rowName, unhurried } from './contenders/gateway.mjs'
import { byMany } from './contenders/many-addresses.mjs'
import { nginxCached, nginxUncached } from './contenders/nginx.mjs'
import { perRequest, ratio } from './report.mjs'

/**
 * @typedef {object} Judged
 * @property {keyof typeof costs} cost
 * @property {string} row
 * @property {string} against
 * @property {number} atMost
 * @property {number} [aim]
 * @property {import('./report.mjs').Ratio} [ratio]
 * @property {'met' | 'missed' | 'absent' | 'failed'} verdict met where the lower quartile is under the bar
 */

/** By the name that the table gives them: from which rounds they come, and how. */
const costs = {
  'CPU per request': { from: 'rounds', read: perRequest },
  'p99 at a fixed rate': { from: 'paced', read: (/** @type {Measured} */ { p99 }) => p99 },
  'p50 of one client': { from: 'rounds', read: (/** @type {Measured} */ { p50 }) => p50 },
  memory: { from: 'rounds', read: (/** @type {Measured} */ { memory }) => memory },
}

/** @typedef {import('./load.mjs').Measured} Measured */

/**
 * @param {string} ours the name of the build that is judged
 * @param {string} expressGateway the name of its row
 * @param {readonly string[]} builds names of the others that are measured beside it
 * @returns {Omit<Judged, 'ratio' | 'verdict'>[]}
 */
export function barsOf(ours, expressGateway, builds) {
  const bare = rowOf(httpProxy)
  const bearer = rowName(ours, 'bearer')
  const admitted = rowName(ours, 'free-daily admitted')
  const cpu = [
    { row: bearer, against: bare, atMost: 0.7, aim: 0.55 },
    { row: rowName(ours, 'API key'), against: bare, atMost: 0.72 },
    { row: bearer, against: rowOf(dispatch), atMost: 1.08, aim: 0.95 },
    { row: admitted, against: bare, atMost: 1, aim: 0.85 },
    { row: rowName(ours, 'free-daily refused'), against: bare, atMost: 0.4 },
    { row: bearer, against: rowOf(nginxUncached), atMost: 0.5 },
    { row: bearer, against: rowOf(nginxCached), atMost: 3.6, aim: 2.5 },
    { row: bearer, against: rowOf(caddy), atMost: 0.34 },
    { row: bearer, against: expressGateway, atMost: 0.11 },
    { row: rowName(ours, inSession), against: bearer, atMost: 1.02 },
    { row: rowName(ours, byMany), against: bearer, atMost: 1.03 },
    { row: rowName(ours, byTwo), against: bearer, atMost: 1.15 },
    { row: rowName(ours, byTwoUnhurried), against: rowName(ours, unhurried), atMost: 1.15 },
  ]
  const before = builds.map(build => rowName(build, alone))
  return [
    ...cpu.map(bar => ({ cost: /** @type {const} */ ('CPU per request'), ...bar })),
    { cost: 'p99 at a fixed rate', row: bearer, against: bare, atMost: 1 },
    ...before.map(against => ({
      cost: /** @type {const} */ ('p50 of one client'),
      row: rowName(ours, alone),
      against,
      atMost: 1.05,
    })),
    { cost: 'memory', row: bearer, against: bare, atMost: 1.6, aim: 1.4 },
    { cost: 'memory', row: admitted, against: bare, atMost: 1.6, aim: 1.4 },
  ]
}

/**
 * @param {ReturnType<typeof barsOf>} bars
 * @param {import('./rounds.mjs').Outcome} outcome
 * @param {ReadonlyMap<string, string>} failures rows that failed
 * @returns {Judged[]}
 */
export function judge(bars, outcome, failures) {
  return bars.map(bar => {
    if (failures.has(bar.row) || failures.has(bar.against)) return { ...bar, verdict: 'failed' }
    const { from, read } = costs[bar.cost]
    const found = ratio(outcome[from], bar.row, bar.against, read)
    if (found.pairs === 0) return { ...bar, verdict: 'absent' }
    return { ...bar, ratio: found, verdict: found.lowerQuartile <= bar.atMost ? 'met' : 'missed' }
  })
}

/** @param {import('./contender.mjs').Contender} contender */
function rowOf({ rows: [name = ''] }) {
  return name
}
