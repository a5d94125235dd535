// The command line of the benchmark.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    /** The duration of each measurement in milliseconds, both at full load and at the fixed rate. */
    time: { type: 'string', default: '2000' },
    connections: { type: 'string', default: '48' },
    /** The fixed rate in requests per second for each process of a row. */
    rate: { type: 'string', default: '3000' },
    /**
     * The minimum share of a CPU core that a row with `fillsItsCore` must use; 0.7 means 70 %. If such a row uses less,
     * the round does not count.
     */
    busy: { type: 'string', default: '0.7' },
    json: { type: 'boolean', default: false },
    /** Writes docs/dev/benchmark.json and the files that are generated from it. */
    record: { type: 'boolean', default: false },
    /** Measures another build too, for example `--also NAME=/elsewhere/dist/cli.js`. */
    also: { type: 'string', multiple: true, default: [] },
    /** Measures only rows whose name contains this text. */
    only: { type: 'string', multiple: true, default: [] },
    /** Skips rows whose name contains this text. */
    without: { type: 'string', multiple: true, default: [] },
    /** Uses no Postgres and no Redis, even if they are available. */
    embedded: { type: 'boolean', default: false },
    /** Lets npm install Express Gateway into a temporary folder. */
    'express-gateway': { type: 'boolean', default: false },
  },
})

/** The settings that are stored with the results. */
export const settings = {
  rounds: Number(values.rounds),
  time: Number(values.time),
  connections: Number(values.connections),
  rate: Number(values.rate),
  busy: Number(values.busy),
}

export const flags = {
  isJson: values.json,
  isRecorded: values.record,
  isEmbedded: values.embedded,
  mayInstall: values['express-gateway'],
  also: values.also.map(word => {
    const [build = '', cli = ''] = word.split('=')
    return { build, cli: resolve(cli) }
  }),
}

export function isAsked(row: string): boolean {
  const named = (parts: readonly string[]) => parts.some(part => row.includes(part))
  return (values.only.length === 0 || named(values.only)) && !named(values.without)
}
