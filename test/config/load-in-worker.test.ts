// Tests the worker thread that reads the configuration for a reload: its result, its time limit and its failures.
import { execFileSync } from 'node:child_process'
import { open, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLoadInWorker } from '../../src/config/load-in-worker.ts'
import { loadSource } from '../../src/config/load-source.ts'
import { emptyFolder } from '../commands/peage.ts'
import { type Compiled, compile } from '../support/compiled.ts'

const folder = emptyFolder()
const source = { file: 'gateway.yaml', folder, env: { NAME: 'from-the-environment' }, cores: 4 }

let worker: Compiled
beforeAll(async () => {
  worker = await compile('src/config/load-worker.ts')
}, 60_000)
afterAll(() => worker.remove())

const loadInWorker = (limitMs?: number) =>
  createLoadInWorker({
    program: pathToFileURL(worker.file),
    ...(limitMs === undefined ? {} : { limitMs }),
  })

function save(text: string): void {
  writeFileSync(join(folder, 'gateway.yaml'), text)
}

const routing = `upstreams: { echo: { targets: ['http://127.0.0.1:9'] } }
routes: [{ path: /a/:id, upstream: echo, name: '\${NAME}' }]
`

it('the loading thread returns the same result as loadSource, but without the test cases', async () => {
  save(`${routing}tests: [{ request: GET /a/1, expect: { status: 401 } }]\n`)
  const { read, digest } = loadSource(source)
  if ('problems' in read) throw new Error(read.problems.map(({ message }) => message).join())
  const { config, lines, warnings, listing } = read
  expect(await loadInWorker()(source)).toEqual(
    structuredClone({ config: { ...config, tests: [] }, lines, warnings, listing, digest }),
  )
  expect(config.tests).toHaveLength(1)
  expect(config.routes[0]?.name).toBe('from-the-environment')
})

it('for an invalid file, the loading thread returns the problems and the digest', async () => {
  save(routing.replace('upstream: echo', 'upstream: eccho'))
  const { read, digest } = loadSource(source)
  expect(await loadInWorker()(source)).toEqual({ ...structuredClone(read), digest })
})

it('if loading takes longer than the time limit, the configuration is refused, and its digest is undefined', async () => {
  execFileSync('mkfifo', [join(folder, 'pipe')])
  save(`${routing}auth: { issuer: '\${file:${join(folder, 'pipe')}}' }\n`)
  const read = await loadInWorker(500)(source)
  expect(read).toMatchObject({
    digest: undefined,
    problems: [
      { file: 'gateway.yaml', line: 1, column: 1, message: 'configuration took longer than 0.5 s to read' },
    ],
  })
})

it('if the loading thread ends with an error, the configuration is refused', async () => {
  const missing = createLoadInWorker({ program: pathToFileURL(join(folder, 'missing.mjs')) })
  expect(await missing(source)).toMatchObject({
    digest: undefined,
    problems: [{ message: expect.stringContaining('configuration could not be read (Cannot find module') }],
  })
})

it('a system error in the loading thread is thrown with its code', async () => {
  writeFileSync(
    join(folder, 'no-descriptors.mjs'),
    "throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })",
  )
  const failing = createLoadInWorker({ program: pathToFileURL(join(folder, 'no-descriptors.mjs')) })
  await expect(failing(source)).rejects.toMatchObject({ code: 'EMFILE' })
})

it('if the loading thread is blocked in a system call, it is abandoned after the time limit', async () => {
  const pipe = join(folder, 'no-writer')
  execFileSync('mkfifo', [pipe])
  writeFileSync(
    join(folder, 'blocked.mjs'),
    `import fs from 'node:fs'; fs.readFileSync(${JSON.stringify(pipe)})`,
  )
  const blocked = createLoadInWorker({ program: pathToFileURL(join(folder, 'blocked.mjs')), limitMs: 500 })
  try {
    expect(await blocked(source)).toMatchObject({
      problems: [{ message: 'configuration took longer than 0.5 s to read' }],
    })
  } finally {
    // Opening the pipe for writing unblocks the thread, so that the thread ends.
    await new Promise(resolve => open(pipe, 'w', resolve))
  }
}, 5_000)
