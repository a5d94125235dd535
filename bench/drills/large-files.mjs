// Files of every kind that is large, checked, and saved over a live one beside 1,000 requests/s: nobody waits for them.
import { execFile, fork } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from '../processes.mjs'
import { setting } from './settings.mjs'
import { startStage } from './stage.mjs'

const perSecond = 1_000
/** Of one window; and how many pairs of one without and one with a reload there are for each file. */
const seconds = setting('LARGE_SECONDS', 60, 5)
const pairs = setting('LARGE_PAIRS', 5, 1)
/** A name of one below, or its beginning; without it, all. */
const only = process.env.LARGE_ONLY ?? ''
/** Milliseconds that the slowest request with a reload may take more than the slowest without, in the median. */
const mostMore = 50

const MiB = 1024 * 1024
const routes = (count, end) => times(count, i => `  - { path: /more-${i}/:id, upstream: service, ${end} }\n`)
const wrong = '  - { path: /public/*, upstreem: service, auth: nun }\n'

/** What is saved, from what is in force. @type {Record<string, (good: string, turn: number) => string>} */
const files = {
  '10,000 routes': (good, turn) => `${good}${routes(10_000, 'auth: none')}# ${turn}\n`,
  '6 MiB': (good, turn) => good + routes(Math.ceil((6 * MiB) / 60), `auth: none, name: n${turn}`),
  '3 MiB of faults': (good, turn) => `${good}${wrong.repeat((3 * MiB) / wrong.length)}# ${turn}\n`,
  'a million deep': (good, turn) => `${good}# ${turn}\n  - ${'['.repeat(1_000_000)}`,
  'more than the memory for it': (_, turn) => `# ${turn}\nroutes: [${'{a,b: c},'.repeat(460_000)}]\n`,
}

/** @type {import('./main.mjs').Drill} */
export async function largeFiles({ say, expect }) {
  if (!only) await checks({ say, expect })
  for (const [name, text] of Object.entries(files)) {
    if (name.startsWith(only)) await beside(name, text, { say, expect })
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

async function beside(name, text, { say, expect }) {
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
    const more = []
    for (let pair = 1; pair <= pairs; pair += 1) {
      const before = await slowest()
      const count = await reloads(admin)
      const during = await slowest(async () => {
        await sleep(seconds * 100)
        save(text(good, pair))
      })
      const late = performance.now() + 120_000
      while ((await reloads(admin)) === count) {
        if (performance.now() > late) throw new Error('it was neither taken nor refused within two minutes')
        await sleep(100)
      }
      more.push(during.worst - before.worst)
      say(
        `${name}, pair ${pair}: slowest ${before.worst.toFixed(0)} ms without, ${during.worst.toFixed(0)} ms with; ` +
          `p99 ${before.p99.toFixed(1)} and ${during.p99.toFixed(1)} ms; the load itself stood still for ${before.ownStall.toFixed(0)} and ${during.ownStall.toFixed(0)} ms`,
      )
      const taken = await reloads(admin)
      save(good)
      while ((await reloads(admin)) === taken) await sleep(100)
    }
    const median = more.toSorted((a, b) => a - b)[Math.floor(more.length / 2)]
    expect(
      `${name}: the slowest request is no slower for it`,
      median <= mostMore,
      `${median.toFixed(0)} ms more in the median of ${more.map(ms => ms.toFixed(0)).join(', ')}`,
    )
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
  return [...page.matchAll(/^peage_config_reloads_total\{[^}]*\} (\d+)/gm)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  )
}

function times(count, line) {
  return Array.from({ length: count }, (_, i) => line(i)).join('')
}
