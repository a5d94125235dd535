// Large and broken files, checked, and saved over a live one under 200 requests/s: they delay no request by much.
import { execFile, fork } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from '../processes.mjs'
import { residentOf } from './memory.mjs'
import { setting } from './settings.mjs'
import { startStage } from './stage.mjs'

const perSecond = 200
/** The length of one window. Each file has several pairs of windows, without and with a reload. */
const seconds = setting('LARGE_SECONDS', 20, 5)
const pairs = setting('LARGE_PAIRS', 5, 1)
/** The beginning of a name below. Without it, the drill saves every file. */
const only = process.env.LARGE_ONLY ?? ''
/** MiB that the memory after a refused file may exceed the memory before it. */
const mostMemory = 32

const MiB = 1024 * 1024
const routes = (count, end) => times(count, i => `  - { path: /more-${i}/:id, upstream: service, ${end} }\n`)
const wrong = '  - { path: /public/*, upstreem: service, auth: nun }\n'

/**
 * The files, each made from the good file. `most` is how many milliseconds the slowest request with a reload may
 * exceed the slowest request without one, in the median.
 * @type {Record<string, { most: number, isGood?: boolean, text(good: string, turn: number): string }>}
 */
const files = {
  '1,000 routes': {
    most: 50,
    isGood: true,
    text: (good, turn) => `${good}${routes(1_000, 'auth: none')}# ${turn}\n`,
  },
  '10,000 routes': {
    most: 300,
    isGood: true,
    text: (good, turn) => `${good}${routes(10_000, 'auth: none')}# ${turn}\n`,
  },
  '2 MiB of faults': {
    most: 300,
    text: (good, turn) => `${good}${wrong.repeat((2 * MiB) / wrong.length)}# ${turn}\n`,
  },
  '6 MiB': {
    most: 300,
    text: (good, turn) => good + routes(Math.ceil((6 * MiB) / 60), `auth: none, name: n${turn}`),
  },
  'a million deep': { most: 300, text: (good, turn) => `${good}# ${turn}\n  - ${'['.repeat(1_000_000)}` },
  'more than its memory or time': {
    most: 300,
    text: (_, turn) => `# ${turn}\nroutes: [${'{a,b: c},'.repeat(460_000)}]\n`,
  },
}

/** @type {import('./main.mjs').Drill} */
export async function largeFiles({ say, expect }) {
  if (!only) await checks({ say, expect })
  for (const [name, file] of Object.entries(files)) {
    if (name.startsWith(only)) await beside(name, file, { say, expect })
  }
}

async function checks({ say, expect }) {
  const folder = temporaryFolder()
  const file = join(folder.path, 'gateway.yaml')
  for (const count of [1_000, 10_000, 50_000]) {
    const text = `upstreams: { service: { targets: ['http://127.0.0.1:9000'] } }\nroutes:\n${routes(count, 'auth: none')}`
    writeFileSync(file, text)
    const { said, wall, cpu, memory } = await check(file)
    const figures = `${wall.toFixed(2)} s (CPU ${cpu.toFixed(2)} s), ${memory.toFixed(0)} MiB; ${(text.length / MiB).toFixed(2)} MiB: ${said}`
    if (count === 10_000) expect('check of 10,000 routes takes less than 3 s', wall < 3, figures)
    else say(`check of ${count} routes: ${figures}`)
  }
  folder.remove()
}

const usage = `data:text/javascript,${encodeURIComponent(`process.once('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  process.stderr.write(JSON.stringify({ cpu: (userCPUTime + systemCPUTime) / 1e6, memory: maxRSS / 1024 }))
})`)}`

async function check(file) {
  const begun = performance.now()
  const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
  const words = ['--import', usage, cli, 'check', '-c', file]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, words).catch(error => error)
  const wall = (performance.now() - begun) / 1_000
  return { said: stdout.trim().replace(/^.*gateway\.yaml:/, ''), wall, ...JSON.parse(stderr) }
}

async function beside(name, { most, isGood = false, text }, { say, expect }) {
  const stage = await startStage({ settings: "admin: { listen: '127.0.0.1:0' }" })
  const load = fork(fileURLToPath(new URL('steady-load.mjs', import.meta.url)))
  const [port = 0, admin = 0] = stage.gateway.ports
  const good = readFileSync(stage.file, 'utf8')
  const save = content => {
    writeFileSync(`${stage.file}.new`, content)
    renameSync(`${stage.file}.new`, stage.file)
  }
  const failures = []
  const slowest = async work => {
    load.send({ port, perSecond, seconds })
    const answer = new Promise(resolve => load.once('message', resolve))
    await work?.()
    const seen = await answer
    failures.push(...seen.failures)
    return seen
  }
  try {
    await slowest()
    const pid = /** @type {number} */ (stage.gateway.pids[0])
    const memory = []
    const more = []
    for (let pair = 1; pair <= pairs; pair += 1) {
      const before = await slowest()
      const count = await reloads(admin)
      const refused = count.failure
      const resident = residentOf(pid)
      const during = await slowest(async () => {
        await sleep(seconds * 100)
        save(text(good, pair))
      })
      const late = performance.now() + 120_000
      while ((await reloads(admin)).all === count.all) {
        if (performance.now() > late) throw new Error('it was neither taken nor refused within two minutes')
        await sleep(100)
      }
      more.push(during.worst - before.worst)
      say(
        `${name}, pair ${pair}: slowest ${before.worst.toFixed(0)} ms without, ${during.worst.toFixed(0)} ms with; ` +
          `p99 ${before.p99.toFixed(1)} and ${during.p99.toFixed(1)} ms; the load itself stood still for ${before.ownStall.toFixed(0)} and ${during.ownStall.toFixed(0)} ms`,
      )
      const taken = await reloads(admin)
      if ((taken.failure === refused) !== isGood)
        throw new Error(`${name} was ${isGood ? 'refused' : 'taken'}`)
      await sleep(1_000)
      memory.push(residentOf(pid) - resident)
      save(good)
      while ((await reloads(admin)).all === taken.all) await sleep(100)
    }
    expect(
      `${name}: the slowest request is at most ${most} ms slower`,
      median(more) <= most,
      `${median(more).toFixed(0)} ms more in the median of ${more.map(ms => ms.toFixed(0)).join(', ')}`,
    )
    if (!isGood) {
      expect(
        `${name}: the memory is back afterwards`,
        median(memory) <= mostMemory,
        `${median(memory).toFixed(0)} MiB more in the median of ${memory.map(size => size.toFixed(0)).join(', ')}`,
      )
    }
    expect(
      `${name}: no request fails`,
      failures.length === 0,
      `${failures.length}: ${[...new Set(failures)].join(', ')}`,
    )
  } finally {
    load.disconnect()
    await stage.stop()
  }
}

async function reloads(admin) {
  const page = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text()
  const of = result =>
    Number(new RegExp(`^peage_config_reloads_total{result="${result}"} (\\d+)`, 'm').exec(page)?.[1])
  return { all: of('success') + of('failure'), failure: of('failure') }
}

function median(all) {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]
}

function times(count, line) {
  return Array.from({ length: count }, (_, i) => line(i)).join('')
}
