// What has to be shown: CPU per request of one row against another's, and whether it is low enough.

import { httpProxy } from './contenders/bare.mjs'
import { caddy } from './contenders/caddy.mjs'
import { byTwo, byTwoUnhurried, inSession, rowName, unhurried } from './contenders/gateway.mjs'
import { byMany } from './contenders/many-addresses.mjs'
import { nginxCached, nginxUncached } from './contenders/nginx.mjs'
import { ratio } from './report.mjs'

/**
 * @typedef {object} Judged
 * @property {string} row
 * @property {string} against
 * @property {number} atMost
 * @property {number} [aim]
 * @property {import('./report.mjs').Ratio} [ratio]
 * @property {'met' | 'missed' | 'absent' | 'failed'} verdict met where the lower quartile is under the bar
 */

/**
 * @param {string} ours the name of the build that is judged
 * @param {string} expressGateway the name of its row
 */
export function barsOf(ours, expressGateway) {
  const bare = rowOf(httpProxy)
  const bearer = rowName(ours, 'bearer')
  return [
    { row: bearer, against: bare, atMost: 0.7, aim: 0.55 },
    { row: rowName(ours, 'API key'), against: bare, atMost: 0.72 },
    { row: rowName(ours, 'free-daily admitted'), against: bare, atMost: 1.3, aim: 1 },
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
}

/**
 * @param {ReturnType<typeof barsOf>} bars
 * @param {readonly import('./rounds.mjs').Round[]} rounds
 * @param {ReadonlyMap<string, string>} failures rows that failed
 * @returns {Judged[]}
 */
export function judge(bars, rounds, failures) {
  return bars.map(bar => {
    if (failures.has(bar.row) || failures.has(bar.against)) return { ...bar, verdict: 'failed' }
    const found = ratio(rounds, bar.row, bar.against)
    if (found.pairs === 0) return { ...bar, verdict: 'absent' }
    return { ...bar, ratio: found, verdict: found.lowerQuartile <= bar.atMost ? 'met' : 'missed' }
  })
}

/** @param {import('./contender.mjs').Contender} contender */
function rowOf({ rows: [name = ''] }) {
  return name
}
