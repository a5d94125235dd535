// What commands and starts take of CPU, against another build's in the same turns, and an embedded gateway of memory.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cpuSeconds, peakMemory, processTree } from '../costs.mjs'
import { residentOf } from '../drills/memory.mjs'
import { startProgram, temporaryFolder } from '../processes.mjs'
import { quantile, spreadOf } from '../report.mjs'
import { openServices } from '../services.mjs'
import { ratioText } from '../tables.mjs'

const turns = Number(process.env.STARTING_TURNS ?? 9)
/** A command's CPU is told in ticks of 10 ms: that of so many runs is divided by their number. */
const runsOfCommand = 10
/** Seconds after which an embedded gateway is taken to be at rest. */
const rest = 10
const ticksPerSecond = 100

const bars = {
  'peage --version': 0.2,
  'peage check': 0.4,
  'embedded, first start': 0.45,
  'embedded, again': 0.6,
  'Postgres and Redis, empty database': 0.5,
  'Postgres and Redis, again': 0.5,
}

/** @type {import('./main.mjs').Part} */
export async function starting({ say, table, before }) {
  const services = await openServices()
  if (services === undefined) throw new Error('this needs a Postgres and a Redis')
  // One for all: there are 16, and nothing that a start takes is in it.
  const redis = await services.createRedis()
  const here = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
  const builds = before === undefined ? [here] : [here, before]
  /** CPU seconds by the name of what was done, a list for each build. @type {Map<string, number[][]>} */
  const seconds = new Map(Object.keys(bars).map(name => [name, builds.map(() => [])]))
  const memory = { atRest: /** @type {number[]} */ ([]), peak: /** @type {number[]} */ ([]) }
  for (let turn = 0; turn < turns; turn += 1) {
    const inTurn = [...builds.entries()]
    for (const [at, cli] of turn % 2 ? inTurn.reverse() : inTurn) {
      for await (const [name, taken] of allOf(cli, { services, redis }, at === 0 ? memory : undefined)) {
        seconds.get(name)?.[at]?.push(taken)
      }
    }
    process.stderr.write(`turn ${turn + 1} of ${turns}\n`)
  }
  const rows = [...seconds].map(([name, [own = [], others]]) => {
    const cells = [name, quantile(own, 0.5).toFixed(3)]
    if (others === undefined) return cells
    const ratios = spreadOf(own.map((one, turn) => one / (others[turn] ?? Number.NaN)))
    return [...cells, quantile(others, 0.5).toFixed(3), ratioText(ratios), `≤ ${bars[name]}`]
  })
  const comparing = before === undefined ? [] : ['before', 'ratio [quartiles]', 'bar']
  table(['CPU seconds', 'here', ...comparing], rows)
  say(`\nNode ${process.versions.node}, medians of ${turns} turns. Starts: until the gateway listens.\n`)
  table(
    ['embedded, MiB', 'median [quartiles]', 'bar'],
    [
      [`resident, ${rest} s after its first start`, ratioText(spreadOf(memory.atRest), 0), '≤ 330'],
      ['peak of the first start', ratioText(spreadOf(memory.peak), 0), '≤ 480'],
    ],
  )
}

/**
 * Each command and each kind of start, once.
 * @param {string} cli
 * @param {{ services: import('../services.mjs').Services, redis: string }} stores
 * @param {{ atRest: number[], peak: number[] } | undefined} memory receives what an embedded gateway takes
 */
async function* allOf(cli, { services, redis }, memory) {
  const folder = temporaryFolder()
  const alone = configuration(folder.path, 'alone', '{}')
  yield ['peage --version', await cpuOfCommand(cli, ['--version'])]
  yield ['peage check', await cpuOfCommand(cli, ['check', '-c', alone])]
  yield ['embedded, first start', await cpuOfStart(cli, alone, memory)]
  yield ['embedded, again', await cpuOfStart(cli, alone)]
  const postgres = await services.createDatabase()
  const served = configuration(folder.path, 'served', JSON.stringify({ postgres, redis }))
  yield ['Postgres and Redis, empty database', await cpuOfStart(cli, served)]
  yield ['Postgres and Redis, again', await cpuOfStart(cli, served)]
  await folder.remove()
}

function configuration(folder, name, storage) {
  const file = join(folder, `${name}.yaml`)
  const data = JSON.stringify(join(folder, 'data'))
  writeFileSync(
    file,
    `server: { listen: '127.0.0.1:0' }
storage: ${storage === '{}' ? `{ data_dir: ${data} }` : storage}
upstreams: { service: { targets: ['http://127.0.0.1:9'] } }
routes: [{ path: /service/*, upstream: service, free_daily: true }]
`,
  )
  return file
}

const execute = promisify(execFile)

async function cpuOfCommand(cli, words) {
  const before = cpuOfEnded(process.pid)
  for (let run = 0; run < runsOfCommand; run += 1) await execute(process.execPath, [cli, ...words])
  return (cpuOfEnded(process.pid) - before) / runsOfCommand
}

async function cpuOfStart(cli, file, memory) {
  const running = await startProgram(cli, ['start', '-c', file])
  const [pid = 0] = running.pids
  const all = processTree(pid)
  const cpu = cpuSeconds(all) + all.reduce((sum, one) => sum + cpuOfEnded(one), 0)
  if (memory !== undefined) {
    memory.peak.push(peakMemory(all))
    await sleep(rest * 1_000)
    memory.atRest.push(processTree(pid).reduce((sum, one) => sum + residentOf(one), 0))
  }
  await running.stop()
  return cpu
}

/** Seconds of a process' children that have ended. */
function cpuOfEnded(pid) {
  // Behind the name, which may have blanks: the 14th and 15th field from there are theirs, user and system.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond
}
