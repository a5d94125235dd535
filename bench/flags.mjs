// The command line of the benchmark.
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    /** Milliseconds of a slice. */
    time: { type: 'string', default: '2000' },
    connections: { type: 'string', default: '48' },
    /** Share of a core below which the round of a row that can fill one does not count. */
    busy: { type: 'string', default: '0.7' },
    /** Requests a second at which latency is taken, and in how many rounds. */
    rate: { type: 'string', default: '500' },
    'paced-rounds': { type: 'string', default: '9' },
    json: { type: 'boolean', default: false },
    /** Another build to measure beside this one: `--also NAME=/elsewhere/dist/cli.js`. */
    also: { type: 'string', multiple: true, default: [] },
    /** Rows to measure or to leave out, by a part of their name. */
    only: { type: 'string', multiple: true, default: [] },
    without: { type: 'string', multiple: true, default: [] },
    /** No Postgres and no Redis, whatever is there. */
    embedded: { type: 'boolean', default: false },
    /** Lets npm install Express Gateway into a temporary folder. */
    'express-gateway': { type: 'boolean', default: false },
  },
})

export const flags = {
  rounds: Number(values.rounds),
  time: Number(values.time),
  connections: Number(values.connections),
  busy: Number(values.busy),
  perSecond: Number(values.rate),
  pacedRounds: Number(values['paced-rounds']),
  isJson: values.json,
  isEmbedded: values.embedded,
  mayInstall: values['express-gateway'],
  /** @type {[name: string, cli: string][]} */
  also: values.also.map(word => {
    const [name = '', cli = ''] = word.split('=')
    return [name, cli]
  }),
  /** @param {string} row */
  isAsked(row) {
    const named = (/** @type {string[]} */ parts) => parts.some(part => row.includes(part))
    return (values.only.length === 0 || named(values.only)) && !named(values.without)
  },
}
