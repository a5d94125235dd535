// Tests that a process without free file descriptors keeps its configuration and does not end.
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { workersOf, writeCrewFile } from '../support/crew.ts'
import type { Stores } from '../support/gateway.ts'
import { type Program, startProgram } from '../support/program.ts'
import { scrape } from '../support/scrape.ts'
import { describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

const soon = { timeout: 20_000, interval: 50 }
/** A limit for open files that is too low. A running gateway has more files open, so it cannot open another one. */
const tooFew = 10
/**
 * Starts the program in its own process group. A past bug sent a signal to the whole group, which would end the
 * tests.
 */
const apart = ['setsid']

let upstream: Upstream
let folder: string
let file: string
let program: Program
beforeEach(async () => {
  upstream = await startUpstream()
  folder = await mkdtemp(join(tmpdir(), 'peage-descriptors-'))
  file = join(folder, 'gateway.yaml')
})
afterEach(async () => {
  program.child.kill('SIGKILL')
  await program.ended
  await upstream.close()
  await rm(folder, { recursive: true, force: true })
})

function limitDescriptors(count: number): void {
  execFileSync('prlimit', ['--pid', String(program.child.pid), `--nofile=${count}:`])
}

const routing = () => `upstreams: { echo: { targets: ['${upstream.url}'] } }
routes:
  - { name: turn, path: /turn-0, upstream: echo, auth: none }
`

const logged = (sentence: string) => program.lines.filter(line => line.includes(sentence))

it('if no file descriptor is free, a reload is tried again later and not reported as a bad configuration', async () => {
  await writeFile(
    file,
    `server: { listen: '127.0.0.1:0' }
admin: { listen: '127.0.0.1:0' }
storage: { data_dir: ${JSON.stringify(folder)} }
${routing()}`,
  )
  program = await startProgram(file, {}, false, apart)
  limitDescriptors(tooFew)
  await writeFile(`${file}.new`, (await readFile(file, 'utf8')).replace('/turn-0', '/turn-1'))
  await rename(`${file}.new`, file)
  program.child.kill('SIGHUP')
  await expect.poll(() => logged('could not be read'), soon).toHaveLength(1)
  limitDescriptors(1_000)
  await expect.poll(() => logged('configuration reloaded'), soon).toHaveLength(1)
  expect((await call(program.url, 'GET', '/turn-1')).status).toBe(200)
  const page = await scrape(program.admin)
  expect(page.value('peage_config_reloads_total', { result: 'failure' })).toBe(0)
  expect((await call(program.admin, 'GET', '/readyz')).body).not.toHaveProperty('configuration')
  expect(logged('could not be read').map(line => JSON.parse(line))).toMatchObject([
    { level: 40, reason: 'EMFILE' },
  ])
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
})

describeWithServices('a primary process', () => {
  let stores: Stores
  beforeEach(async () => {
    stores = await services.open()
  })
  afterEach(() => services.drop(stores))

  it('if no file descriptor is free, starts the replacement of a dead worker later', async () => {
    program = await startProgram(await writeCrewFile(folder, { stores, routes: routing() }), {}, false, apart)
    const [killed = 0, other] = workersOf(program.child.pid as number)
    limitDescriptors(tooFew)
    process.kill(killed, 'SIGKILL')
    await expect.poll(() => logged('replacement worker failed to start').length, soon).toBeGreaterThan(0)
    expect(workersOf(program.child.pid as number)).toEqual([other])
    limitDescriptors(1_000)
    await expect.poll(() => logged('replacement worker is ready'), soon).toHaveLength(1)
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
  })
})
