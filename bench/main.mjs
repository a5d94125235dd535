// The benchmark: starts the contenders on loopback, measures them side by side, prints a table (CONTRACT §9).
import { parseArgs } from 'node:util'
import { checkAnswer } from './contender.mjs'
import { direct } from './contenders/direct.mjs'
import { dispatch } from './contenders/dispatch.mjs'
import { gateway } from './contenders/gateway.mjs'
import { httpProxy } from './contenders/http-proxy.mjs'
import { startProgram } from './processes.mjs'
import { summarise, table } from './report.mjs'
import { runRounds } from './rounds.mjs'

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    /** Milliseconds of a slice. */
    time: { type: 'string', default: '2000' },
    connections: { type: 'string', default: '48' },
    /** Share of a core below which a contender's round does not count. */
    busy: { type: 'string', default: '0.7' },
    json: { type: 'boolean', default: false },
    /** Another build to measure beside this one: `--also NAME=/elsewhere/dist/cli.js`. */
    also: { type: 'string', multiple: true, default: [] },
    /** Names to leave out. */
    without: { type: 'string', multiple: true, default: [] },
  },
})

const others = flags.also.map(word => {
  const [name = '', cli = ''] = word.split('=')
  return gateway(name, cli)
})
const contenders = [direct, httpProxy, dispatch, gateway('gateway, public'), ...others].filter(
  ({ name }) => !flags.without.includes(name),
)

const upstream = await startProgram('contenders/serve-upstream.mjs')
const ready = []
try {
  for (const contender of contenders) {
    const running = await contender.start(upstream)
    ready.push({ name: contender.name, running })
    await checkAnswer(contender, running.port)
  }
  const rounds = await runRounds(ready, {
    rounds: Number(flags.rounds),
    time: Number(flags.time),
    connections: Number(flags.connections),
    busy: Number(flags.busy),
    onRound(round, isKept) {
      const cpu = [...round].map(([name, one]) => `${name} ${((one.cpu / one.requests) * 1e6).toFixed(1)}`)
      process.stderr.write(
        `${isKept ? 'round' : 'left out, the machine was not ours'}: µs of CPU a request: ${cpu.join(' · ')}\n`,
      )
    },
  })
  const rows = summarise(rounds, httpProxy.name)
  process.stdout.write(flags.json ? `${JSON.stringify(rows, null, 2)}\n` : `${table(rows)}\n`)
} finally {
  for (const { running } of ready) await running.stop()
  await upstream.stop()
}
