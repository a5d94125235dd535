// Reloads of the real program: by SIGHUP, on every worker, and said on standard error as `check` says it.
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { ask, type Crew, startCrew } from '../support/crew.ts'
import { makeDatabase } from '../support/embedded.ts'
import { type Program, runProgram, startProgram } from '../support/program.ts'
import { scrape } from '../support/scrape.ts'
import { describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

const soon = { timeout: 20_000, interval: 50 }

let upstream: Upstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.close())

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
  await makeDatabase(join(folder, 'data'))
  const file = join(folder, 'gateway.yaml')
  await writeFile(
    file,
    `server: { listen: '127.0.0.1:0' }
admin: { listen: '127.0.0.1:0' }
storage: { data_dir: ${JSON.stringify(join(folder, 'data'))} }
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

  it('takes what was saved at SIGHUP, whatever it hangs on: a secret in a file is read again', async () => {
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

  it('refuses a bad file on standard error, in the words of check', async () => {
    await save(file, 'upstream: echo', 'upstream: eccho')
    program.child.kill('SIGHUP')
    await expect.poll(() => errors, soon).not.toBe('')
    const { stdout } = await runProgram(['check', '-c', file], dirname(file))
    // Once by the signal, and where it was seen before that, once more.
    expect(errors.split('\n').filter(line => line !== '')).toEqual(
      errors
        .split('\n')
        .filter(line => line !== '')
        .map(() => stdout.trim()),
    )
    expect(program.lines.filter(line => line.includes('is refused'))[0]).toContain(
      'names no declared upstream',
    )
    expect((await call(program.url, 'GET', '/turn-0')).status).toBe(200)
  })

  it('serves on where nobody reads its standard error any more', async () => {
    const before = await failures(program)
    program.child.stderr?.destroy()
    for (const more of [1, 2]) {
      program.child.kill('SIGHUP')
      await expect.poll(() => failures(program), soon).toBe(before + more)
    }
    expect((await call(program.url, 'GET', '/turn-0')).status).toBe(200)
  })
})

describe('a program that has just been started', () => {
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

  it('says in its log, at start and when it has reloaded, what check warns of', async () => {
    await save(file, 'upstreams: {', "upstreams: { spare: { targets: ['http://127.0.0.1:9'] },")
    program = await startProgram(file)
    const { child, lines } = program
    const warned = () =>
      lines.map(line => JSON.parse(line)).filter(({ level, msg }) => level === 40 && msg.includes('no route'))
    const said = { key: 'upstreams.spare', line: 4, msg: 'upstreams.spare: no route leads to it' }
    expect(warned()).toMatchObject([said])
    await save(file, 'spare:', 'other:')
    child.kill('SIGHUP')
    const again = { ...said, key: 'upstreams.other', msg: 'upstreams.other: no route leads to it' }
    await expect.poll(() => warned()[1], soon).toMatchObject(again)
  })

  it('outlives a SIGHUP that comes before it has loaded itself', async () => {
    program = await startProgram(file, hungUpAt('commands/run.js'))
    expect((await call(program.url, 'GET', '/turn-0')).status).toBe(200)
  })

  it('from a pipe is not found to have an empty configuration later on', async () => {
    program = await startProgram(file, {}, true)
    // More looks than one would be refused at.
    await new Promise(resolve => setTimeout(resolve, 1_500))
    expect(await failures(program)).toBe(0)
  })
})

/** What has a program receive SIGHUP as it begins to load a module. */
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
  let stores: Awaited<ReturnType<typeof services.open>>
  let crew: Crew
  let file: string
  beforeAll(async () => {
    stores = await services.open()
    crew = await startCrew({ stores, routes: routing() })
    file = String(crew.child.spawnargs.at(-1))
  })
  afterAll(async () => {
    await crew?.stop()
    await services.drop(stores)
  })

  /** What all workers answer. */
  async function everyWorker(path: string): Promise<Set<number>> {
    const seen = new Map<string, Set<number>>()
    while (seen.size < 2) {
      const { worker, status } = await ask(crew.url + path)
      seen.set(worker, (seen.get(worker) ?? new Set()).add(status))
    }
    return new Set([...seen.values()].flatMap(statuses => [...statuses]))
  }
  const logged = (sentence: string) => crew.lines.filter(line => line.includes(sentence)).length

  it('all take it', async () => {
    await save(file, '/turn-0', '/turn-1')
    await expect.poll(() => logged('is reloaded'), soon).toBe(1)
    expect([await everyWorker('/turn-1'), await everyWorker('/turn-0')]).toEqual([
      new Set([200]),
      new Set([404]),
    ])
    const page = await scrape(crew.admin)
    expect(page.value('peage_config_reloads_total', { result: 'success' })).toBe(1)
    expect(page.value('peage_config_last_reload_successful')).toBe(1)
  })

  it('none takes what one of them cannot be served with', async () => {
    await save(file, '/turn-1', '/turn-2')
    await save(file, 'auth: { ', "auth: { keys: ['/nowhere/key'], ")
    await expect.poll(() => logged('is refused'), soon).toBe(1)
    expect([await everyWorker('/turn-1'), await everyWorker('/turn-2')]).toEqual([
      new Set([200]),
      new Set([404]),
    ])
    expect((await scrape(crew.admin)).value('peage_config_last_reload_successful')).toBe(0)
    await save(file, "keys: ['/nowhere/key'], ", '')
    await expect.poll(() => logged('is reloaded'), soon).toBe(2)
    expect(await everyWorker('/turn-2')).toEqual(new Set([200]))
  })

  it('one that replaces another serves what was taken last', async () => {
    await save(file, '/turn-2', '/turn-3')
    await expect.poll(() => logged('is reloaded'), soon).toBe(3)
    process.kill(Number(crew.pids()[0]), 'SIGKILL')
    await expect.poll(() => logged('serves in its place'), soon).toBe(1)
    expect([await everyWorker('/turn-3'), await everyWorker('/turn-0')]).toEqual([
      new Set([200]),
      new Set([404]),
    ])
  })

  it('one that begins to serve while another prepares takes it with the others', async () => {
    const [slow = 0, dead = 0] = crew.pids()
    process.kill(slow, 'SIGSTOP')
    try {
      process.kill(dead, 'SIGKILL')
      await expect.poll(() => crew.pids(), soon).not.toContain(dead)
      await save(file, '/turn-3', '/turn-4')
      crew.child.kill('SIGHUP')
      await expect.poll(() => logged('serves in its place'), soon).toBe(2)
    } finally {
      process.kill(slow, 'SIGCONT')
    }
    await expect.poll(() => logged('is reloaded'), soon).toBe(4)
    expect(await everyWorker('/turn-4')).toEqual(new Set([200]))
  })
})
