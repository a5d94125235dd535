// The command `check` reads large configurations. Then a gateway under load reloads large and broken configurations.
// These reloads must not delay requests much.
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cli, temporaryFolder } from '../support/processes.ts'
import { residentOf } from './memory.ts'
import { MiB } from './noise.ts'
import { reloadsOf, replaceFile } from './reload.ts'
import { setting } from './settings.ts'
import { startStage } from './stage.ts'
import type { Window, WindowResult } from './steady-load.ts'
import type { Watch } from './watch.ts'

const perSecond = 200
/**
 * The duration of one measurement in seconds. For each file, the drill makes several pairs of measurements. Each pair
 * consists of a measurement without a reload and a measurement with a reload.
 */
const seconds = setting('LARGE_SECONDS', 20, 5)
const pairs = setting('LARGE_PAIRS', 5, 1)
/** Tests only the files in the list below whose name starts with this text. By default, tests all files. */
const only = process.env.LARGE_ONLY ?? ''
/** The maximum number of MiB by which the memory of the gateway may grow when the gateway refuses a file. */
const mostMemory = 32

const routes = (count: number, end: string) =>
  Array.from({ length: count }, (_, i) => `  - { path: /more-${i}/:id, upstream: service, ${end} }\n`).join(
    '',
  )
const wrong = '  - { path: /public/*, upstreem: service, auth: nun }\n'

interface LargeFile {
  readonly name: string
  /**
   * The maximum number of milliseconds by which a reload may delay the slowest request. The drill compares this number
   * with the median of all pairs.
   */
  readonly most: number
  readonly isGood?: boolean
  /** @param good the small valid file at the start of the drill @param turn a number that makes each text different */
  text(good: string, turn: number): string
}

const files: readonly LargeFile[] = [
  {
    name: '1,000 routes',
    most: 50,
    isGood: true,
    text: (good, turn) => `${good}${routes(1_000, 'auth: none')}# ${turn}\n`,
  },
  {
    name: '10,000 routes',
    most: 300,
    isGood: true,
    text: (good, turn) => `${good}${routes(10_000, 'auth: none')}# ${turn}\n`,
  },
  {
    name: '2 MiB of errors',
    most: 300,
    text: (good, turn) => `${good}${wrong.repeat((2 * MiB) / wrong.length)}# ${turn}\n`,
  },
  {
    name: '6 MiB',
    most: 300,
    text: (good, turn) => good + routes(Math.ceil((6 * MiB) / 60), `auth: none, name: n${turn}`),
  },
  {
    name: 'a million levels',
    most: 300,
    text: (good, turn) => `${good}# ${turn}\n  - ${'['.repeat(1_000_000)}`,
  },
  {
    name: 'beyond the limits of memory or time',
    most: 300,
    text: (_, turn) => `# ${turn}\nroutes: [${'{a,b: c},'.repeat(460_000)}]\n`,
  },
]

export async function largeFiles(watch: Watch): Promise<void> {
  if (!only) await checkLarge(watch)
  for (const file of files) if (file.name.startsWith(only)) await saveOverLive(file, watch)
}

async function checkLarge({ say, expect }: Watch): Promise<void> {
  const folder = temporaryFolder()
  const file = join(folder.path, 'gateway.yaml')
  for (const count of [1_000, 10_000, 50_000]) {
    const text = `upstreams: { service: { targets: ['http://127.0.0.1:9000'] } }\nroutes:\n${routes(count, 'auth: none')}`
    writeFileSync(file, text)
    const { message, wall, cpu, memory } = await check(file)
    const figures = `${wall.toFixed(2)} s (CPU ${cpu.toFixed(2)} s), ${memory.toFixed(0)} MiB; ${(text.length / MiB).toFixed(2)} MiB: ${message}`
    if (count === 10_000) expect('`check` of 10,000 routes takes less than 3 s', wall < 3, figures)
    else say(`\`check\` of ${count} routes: ${figures}`)
  }
  await folder.remove()
}

interface Usage {
  /** The CPU time in seconds. */
  readonly cpu: number
  /** The peak memory in MiB. */
  readonly memory: number
}

/** A module that `check` loads. When the process exits, the module writes the resource usage to standard error. */
const usage = `data:text/javascript,${encodeURIComponent(`process.once('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  process.stderr.write(JSON.stringify({ cpu: (userCPUTime + systemCPUTime) / 1e6, memory: maxRSS / 1024 }))
})`)}`

async function check(file: string): Promise<Usage & { message: string; wall: number }> {
  const begun = performance.now()
  const words = ['--import', usage, cli, 'check', '-c', file]
  // The drill ignores the exit status, because `check` exits with an error for a file with too many routes.
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>(resolve =>
    execFile(process.execPath, words, (_, stdout, stderr) => resolve({ stdout, stderr })),
  )
  const wall = (performance.now() - begun) / 1_000
  return { message: stdout.trim().replace(/^.*gateway\.yaml:/, ''), wall, ...(JSON.parse(stderr) as Usage) }
}

async function saveOverLive(
  { name, most, isGood = false, text }: LargeFile,
  { say, expect }: Watch,
): Promise<void> {
  const stage = await startStage({ settings: "admin: { listen: '127.0.0.1:0' }" })
  const load = fork(fileURLToPath(new URL('./steady-load.js', import.meta.url)))
  const { port, pid, ports } = stage.gateway
  const good = readFileSync(stage.file, 'utf8')
  const save = (content: string) => replaceFile(stage.file, content)
  const reloads = async () => {
    const { success, failure } = await reloadsOf(ports[1] ?? 0)
    return { all: success + failure, failure }
  }
  const untilReloaded = async (before: number) => {
    const late = performance.now() + 120_000
    while ((await reloads()).all === before) {
      if (performance.now() > late)
        throw new Error('the file was neither accepted nor refused within two minutes')
      await sleep(100)
    }
  }
  const failures: string[] = []
  const measure = async (work?: () => Promise<void>): Promise<WindowResult> => {
    load.send({ port, perSecond, seconds } satisfies Window)
    const measured: Promise<[WindowResult]> = once(load, 'message') as Promise<[WindowResult]>
    await work?.()
    const [result] = await measured
    failures.push(...result.failures)
    return result
  }
  try {
    await measure()
    const memory: number[] = []
    const more: number[] = []
    for (let pair = 1; pair <= pairs; pair += 1) {
      const before = await measure()
      const reloadsBefore = await reloads()
      const residentBefore = residentOf(pid)
      const during = await measure(async () => {
        await sleep(seconds * 100)
        save(text(good, pair))
      })
      await untilReloaded(reloadsBefore.all)
      more.push(during.worst - before.worst)
      say(
        `${name}, pair ${pair}, without and with a reload: maximum ${before.worst.toFixed(0)} and ${during.worst.toFixed(0)} ms, ` +
          `p99 ${before.p99.toFixed(1)} and ${during.p99.toFixed(1)} ms; the load process was blocked for ${before.ownStall.toFixed(0)} and ${during.ownStall.toFixed(0)} ms`,
      )
      const { all, failure } = await reloads()
      if ((failure === reloadsBefore.failure) !== isGood)
        throw new Error(`${name} was ${isGood ? 'refused' : 'accepted'}`)
      await sleep(1_000)
      memory.push(residentOf(pid) - residentBefore)
      save(good)
      await untilReloaded(all)
    }
    expect(
      `${name}: the slowest request is at most ${most} ms slower`,
      median(more) <= most,
      `${median(more).toFixed(0)} ms slower in the median of ${more.map(ms => ms.toFixed(0)).join(', ')}`,
    )
    if (!isGood) {
      expect(
        `${name}: memory grows by at most ${mostMemory} MiB`,
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

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN
}
