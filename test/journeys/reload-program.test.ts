// The real program reloads its configuration on SIGHUP and when the file changes, with one process and with
// workers.
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { ask, type Crew, startCrew } from '../support/crew.ts'
import { makeDatabase } from '../support/embedded.ts'
import type { Stores } from '../support/gateway.ts'
import { type Program, runProgram, startProgram } from '../support/program.ts'
import { scrape } from '../support/scrape.ts'
import { describeWithServices, poolSize } from '../support/services.ts'
import { eitherSetup } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

const soon = { timeout: 20_000, interval: 50 }

let upstream: Upstream
/** The data folder that all programs in this file use if the database is embedded. */
let data: string
let stores: Stores
beforeAll(async () => {
  upstream = await startUpstream()
  stores = await eitherSetup().open()
  data = await mkdtemp(join(tmpdir(), 'peage-reload-'))
  if (stores.postgres === '') await makeDatabase(data)
})
afterAll(async () => {
  await upstream.close()
  await eitherSetup().drop(stores)
  await rm(data, { recursive: true })
})

const routing = () => `upstreams: { echo: { targets: ['${upstream.url}'] } }
routes:
  - { name: turn, path: /turn-0, upstream: echo, auth: none }
`

async function save(file: string, from: string | RegExp, to: string): Promise<void> {
  const text = await readFile(file, 'utf8')
  expect(text).toMatch(from)
  await writeFile(`${file}.new`, text.replace(from, to))
  await rename(`${file}.new`, file)
}

async function writeConfiguration(folder: string): Promise<string> {
  const file = join(folder, 'gateway.yaml')
  await writeFile(
    file,
    `server: { listen: '127.0.0.1:0' }
admin: { listen: '127.0.0.1:0' }
storage: { postgres: '${stores.postgres}', redis: '${stores.redis}', data_dir: ${JSON.stringify(data)}, pool: ${poolSize} }
${routing()}`,
  )
  return file
}

const failures = async ({ admin }: Program) =>
  (await scrape(admin)).value('peage_config_reloads_total', { result: 'failure' })

describe('the program', () => {
  let folder: string
  let file: string
  let program: Program
  let errors = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'peage-reload-'))
    file = await writeConfiguration(folder)
    program = await startProgram(file)
    program.child.stderr?.on('data', chunk => {
      errors += chunk
    })
  })
  afterAll(async () => {
    program?.child.kill('SIGTERM')
    await program?.ended
    await rm(folder, { recursive: true, force: true })
  })

  it('applies the saved configuration on SIGHUP, including a changed secret file', async () => {
    await writeFile(join(folder, 'secret'), 'the-first-token-of-operators')
    await save(
      file,
      "listen: '127.0.0.1:0' }\nstorage",
      `listen: '127.0.0.1:0', token: "\${file:${folder}/secret}" }\nstorage`,
    )
    program.child.kill('SIGHUP')
    const list = async (token: string) =>
      (await call(program.admin, 'GET', '/admin/v1/routes', { token })).status
    await expect.poll(() => list('the-first-token-of-operators'), soon).toBe(200)
    await writeFile(join(folder, 'secret'), 'the-second-token-of-operators')
    program.child.kill('SIGHUP')
    await expect.poll(() => list('the-second-token-of-operators'), soon).toBe(200)
    expect(await list('the-first-token-of-operators')).toBe(401)
  })

  it('refuses a bad file, logs the problems that `peage check` prints, and reports the refusal in /readyz', async () => {
    const ready = async () => {
      const { status, body } = await call(program.admin, 'GET', '/readyz')
      return { status, configuration: body.configuration, overall: body.status }
    }
    const refusals = () => program.lines.filter(line => line.includes('configuration rejected'))
    await expect.poll(ready, soon).toEqual({ status: 200, configuration: undefined, overall: 'ok' })
    await save(file, 'upstream: echo', 'upstream: eccho')
    program.child.kill('SIGHUP')
    await expect.poll(() => refusals().length, soon).toBeGreaterThan(0)
    const { stdout } = await runProgram(['check', '-c', file], dirname(file))
    expect(stdout).toContain('routes[0].upstream  ')
    expect(JSON.parse(String(refusals()[0]))).toMatchObject({ level: 50, problems: [stdout.trim()] })
    expect(errors).toBe('')
    expect(await ready()).toEqual({ status: 200, configuration: 'refused', overall: 'ok' })
    expect((await call(program.url, 'GET', '/turn-0')).status).toBe(200)

    await save(file, 'upstream: eccho', 'upstream: echo')
    await expect.poll(async () => (await ready()).configuration, soon).toBe(undefined)
  })

  it('on SIGHUP, logs that the file is unchanged if its content is the same', async () => {
    const told = () => program.lines.filter(line => line.includes('the file is unchanged')).length
    // When the line of this request appears, the lines of earlier reloads have been written too.
    await call(program.url, 'GET', '/before-the-signal')
    await expect.poll(() => program.lines.some(line => line.includes('/before-the-signal')), soon).toBe(true)
    const before = told()
    program.child.kill('SIGHUP')
    await expect.poll(told, soon).toBe(before + 1)
  })

  /**
   * Saves the file, then sends requests until the log contains a new line with `sentence`.
   * @returns the duration of the slowest response in milliseconds
   */
  async function slowestWhile(text: string, sentence: string): Promise<number> {
    const { url, lines } = program
    const told = () => lines.filter(line => line.includes(sentence)).length
    const before = told()
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
    let slowest = 0
    while (told() === before) {
      const begun = performance.now()
      expect((await call(url, 'GET', '/turn-0')).status).toBe(200)
      slowest = Math.max(slowest, performance.now() - begun)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    return slowest
  }

  it('keeps responding while it refuses a file that is too large, nested too deep or wrong in every line', async () => {
    const good = await readFile(file, 'utf8')
    const wrong = good + '  - { path: /x, upstreem: echo, auth: nun }\n'.repeat(3_000)
    const deep = `${good}  - ${'['.repeat(1_000_000)}`
    const slowest = [
      await slowestWhile(`${good}#${' '.repeat(6 * 1024 * 1024)}\n`, '4 MiB'),
      await slowestWhile(deep, 'gateway.yaml:7:'),
      await slowestWhile(wrong, 'gateway.yaml:7:'),
      await slowestWhile(good, 'the file is unchanged'),
    ]
    // The limit is generous, because other processes may delay a response. The drill `large-files` checks the exact
    // limit.
    expect(Math.max(...slowest)).toBeLessThan(2_000)
  }, 120_000)

  it('if the file that ${file:} names becomes a pipe without a writer, refuses the reload and keeps serving', async () => {
    const secret = join(folder, 'secret')
    const refusals = () => program.lines.filter(line => line.includes('configuration rejected'))
    const before = refusals().length
    await rm(secret)
    execFileSync('mkfifo', [secret])
    program.child.kill('SIGHUP')
    await expect.poll(() => refusals().length, soon).toBe(before + 1)
    expect(refusals().at(-1)).toContain(secret)
    expect((await call(program.url, 'GET', '/turn-0')).status).toBe(200)
    await rm(secret)
    await writeFile(secret, 'the-second-token-of-operators')
    const told = () => program.lines.filter(line => line.includes('the file is unchanged')).length
    const unchanged = told()
    program.child.kill('SIGHUP')
    await expect.poll(told, soon).toBe(unchanged + 1)
  })

  it('keeps serving and reloading after the reader of its log has closed the pipe', async () => {
    const before = (await failures(program)) + 1
    await save(file, 'upstream: echo', 'upstream: eccho')
    await expect.poll(() => failures(program), soon).toBe(before)
    program.child.stderr?.destroy()
    for (const more of [1, 2]) {
      program.child.kill('SIGHUP')
      await expect.poll(() => failures(program), soon).toBe(before + more)
    }
    expect((await call(program.url, 'GET', '/turn-0')).status).toBe(200)
    await save(file, 'upstream: eccho', 'upstream: echo')
  })
})

describe('a newly started program', () => {
  let folder: string
  let file: string
  let program: Program | undefined
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'peage-reload-'))
    file = await writeConfiguration(folder)
  })
  afterEach(async () => {
    program?.child.kill('SIGTERM')
    await program?.ended
    program = undefined
    await rm(folder, { recursive: true, force: true })
  })

  it('logs the warnings that `peage check` prints, at its start and after a reload', async () => {
    await save(file, 'upstreams: {', "upstreams: { spare: { targets: ['http://127.0.0.1:9'] },")
    program = await startProgram(file)
    const { child, lines } = program
    const warned = () =>
      lines
        .map(line => JSON.parse(line))
        .filter(({ level, key }) => level === 40 && key?.startsWith('upstreams.'))
    const said = { key: 'upstreams.spare', line: 4, msg: expect.stringMatching(/^upstreams\.spare: ./) }
    expect(warned()).toMatchObject([said])
    await save(file, 'spare:', 'other:')
    child.kill('SIGHUP')
    await expect.poll(() => warned()[1], soon).toMatchObject({ key: 'upstreams.other', line: 4 })
  })

  it('survives a SIGHUP that arrives before its modules are loaded', async () => {
    program = await startProgram(file, hungUpAt('commands/run.js'))
    expect((await call(program.url, 'GET', '/turn-0')).status).toBe(200)
  })

  it('if its configuration came from a pipe, does not later reload it as an empty file', async () => {
    program = await startProgram(file, {}, true)
    // During this time, the program checks the file several times.
    await new Promise(resolve => setTimeout(resolve, 1_500))
    expect(await failures(program)).toBe(0)
  })
})

/** Returns an environment that sends SIGHUP to the program when the program starts to load `module`. */
function hungUpAt(module: string): Record<string, string> {
  const hooks = `export async function resolve(name, context, next) {
  if (name.endsWith('${module}')) process.kill(process.pid, 'SIGHUP')
  return next(name, context)
}`
  const url = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`
  const register = `import { register } from 'node:module'\nregister('${url(hooks).replaceAll("'", '%27')}')`
  return { NODE_OPTIONS: `--import=${url(register)}` }
}

describeWithServices('several workers', () => {
  let crew: Crew
  let file: string
  beforeAll(async () => {
    crew = await startCrew({ stores, routes: routing() })
    file = String(crew.child.spawnargs.at(-1))
  })
  afterAll(() => crew?.stop())

  /** Sends requests until both workers have responded. @returns the status codes of all responses */
  async function everyWorker(path: string): Promise<Set<number>> {
    const seen = new Map<string, Set<number>>()
    while (seen.size < 2) {
      const { worker, status } = await ask(crew.url + path)
      seen.set(worker, (seen.get(worker) ?? new Set()).add(status))
    }
    return new Set([...seen.values()].flatMap(statuses => [...statuses]))
  }
  const logged = (sentence: string) => crew.lines.filter(line => line.includes(sentence)).length

  it('all use the new configuration after a reload', async () => {
    await save(file, '/turn-0', '/turn-1')
    await expect.poll(() => logged('configuration reloaded'), soon).toBe(1)
    expect([await everyWorker('/turn-1'), await everyWorker('/turn-0')]).toEqual([
      new Set([200]),
      new Set([404]),
    ])
    const page = await scrape(crew.admin)
    expect(page.value('peage_config_reloads_total', { result: 'success' })).toBe(1)
    expect(page.value('peage_config_last_reload_successful')).toBe(1)
  })

  it('all keep the old configuration if one worker cannot use the new one', async () => {
    await save(file, '/turn-1', '/turn-2')
    await save(file, 'auth: { ', "auth: { keys: ['/nowhere/key'], ")
    await expect.poll(() => logged('configuration rejected'), soon).toBe(1)
    expect([await everyWorker('/turn-1'), await everyWorker('/turn-2')]).toEqual([
      new Set([200]),
      new Set([404]),
    ])
    expect((await scrape(crew.admin)).value('peage_config_last_reload_successful')).toBe(0)
    await save(file, "keys: ['/nowhere/key'], ", '')
    await expect.poll(() => logged('configuration reloaded'), soon).toBe(2)
    expect(await everyWorker('/turn-2')).toEqual(new Set([200]))
  })

  it('get a replacement with the latest configuration if one of them dies', async () => {
    await save(file, '/turn-2', '/turn-3')
    await expect.poll(() => logged('configuration reloaded'), soon).toBe(3)
    process.kill(Number(crew.pids()[0]), 'SIGKILL')
    await expect.poll(() => logged('replacement worker is ready'), soon).toBe(1)
    expect([await everyWorker('/turn-3'), await everyWorker('/turn-0')]).toEqual([
      new Set([200]),
      new Set([404]),
    ])
  })

  it('all use the new configuration, even a worker that starts during the reload', async () => {
    const [slow = 0, dead = 0] = crew.pids()
    process.kill(slow, 'SIGSTOP')
    try {
      // Sends no SIGHUP. The gateway may have noticed the saved file already, and SIGHUP would cause a second reload.
      await save(file, '/turn-3', '/turn-4')
      process.kill(dead, 'SIGKILL')
      await expect.poll(() => crew.pids(), soon).not.toContain(dead)
      await expect.poll(() => logged('replacement worker is ready'), soon).toBe(2)
    } finally {
      process.kill(slow, 'SIGCONT')
    }
    await expect.poll(() => logged('configuration reloaded'), soon).toBe(4)
    expect(await everyWorker('/turn-4')).toEqual(new Set([200]))
  })

  it('get a replacement for a worker that activates a reload too late, and the gateway reports the incomplete reload', async () => {
    const [slow = 0, stuck = 0] = crew.pids()
    const reloaded = logged('configuration reloaded')
    const replaced = logged('replacement worker is ready')
    // `slow` is paused first, so it is the last worker that prepares the configuration. `stuck` is paused after it has
    // prepared the configuration.
    process.kill(slow, 'SIGSTOP')
    try {
      const other = `other: { health: { path: /health }, targets: ['${upstream.url}'] }`
      await save(file, /(echo:[\s\S]*)\/turn-4/, `${other}, $1/turn-5`)
      await expect.poll(() => upstream.received.map(({ url }) => url), soon).toContain('/health')
      await sleep(1_000)
      process.kill(stuck, 'SIGSTOP')
    } finally {
      process.kill(slow, 'SIGCONT')
    }
    await expect.poll(() => logged('reload incomplete'), soon).toBe(1)
    const page = await scrape(crew.admin)
    expect((await crew.ready()).body).toMatchObject({ status: 'degraded', configuration: 'incomplete' })
    expect(page.value('peage_config_last_reload_successful')).toBe(0)
    expect(page.value('peage_config_reloads_total', { result: 'failure' })).toBe(2)
    expect(crew.lines.map(line => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ level: 50, workers: [stuck] }),
    )
    await expect.poll(() => logged('replacement worker is ready'), soon).toBe(replaced + 1)
    expect(crew.pids()).not.toContain(stuck)
    expect([await everyWorker('/turn-5'), await everyWorker('/turn-4')]).toEqual([
      new Set([200]),
      new Set([404]),
    ])
    expect((await crew.ready()).body).not.toHaveProperty('configuration')
    expect((await scrape(crew.admin)).value('peage_config_last_reload_successful')).toBe(1)
    expect(logged('configuration reloaded')).toBe(reloaded)
  })
})
