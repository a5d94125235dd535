// Tests that `peage check` quickly refuses files that are too large, too deeply nested, endless or full of problems.
import { execFileSync, spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runProgram } from '../support/program.ts'
import { isFullMatrix } from '../support/services.ts'
import { commandLine, emptyFolder } from './peage.ts'

const { peage, write } = commandLine()

const MiB = 1024 * 1024
const check = (file: string, env: Record<string, string> = {}) => peage(['check', '-c', file], env)
const refused = (place: string, why = '') => ({
  exit: 2,
  stdout: expect.stringMatching(new RegExp(`^${place} {2}.*${why}.*\\n$`)),
  stderr: '',
})

const withComment = (bytes: number) => {
  const text = 'limits: { free_daily: 2 }\n#'
  return text + ' '.repeat(bytes - text.length)
}

describe('peage check', () => {
  it('accepts a file of 4 MiB, and refuses a file that is one byte larger', async () => {
    expect(await check(write('full.yaml', withComment(4 * MiB)))).toMatchObject({ exit: 0 })
    expect(await check(write('fuller.yaml', withComment(4 * MiB + 1)))).toEqual(
      refused('fuller.yaml:1:1', '4 MiB'),
    )
  })

  it('accepts an included file of 64 KiB, and refuses an included file that is one byte larger', async () => {
    const file = write('named.yaml', 'auth: { issuer: "${file:named}" }\n')
    write('named', 'x'.repeat(64 * 1024))
    expect(await check(file)).toMatchObject({ exit: 0 })
    write('named', 'x'.repeat(64 * 1024 + 1))
    expect(await check(file)).toEqual(refused('named.yaml:1:17', '64 KiB'))
  })

  it('reads a slow pipe to its end, and an endless pipe up to the limit', async () => {
    const folder = emptyFolder()
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const say = (script: string) => spawn('sh', ['-c', `(${script}) > "$0"`, pipe], { stdio: 'ignore' })
    say('echo limits:; sleep 0.3; echo "  free_daily: 0"')
    expect(await runProgram(['check', '-c', pipe], folder)).toMatchObject({
      code: 2,
      stdout: expect.stringContaining(`${pipe}:2:15  limits.free_daily  `),
    })
    say('yes')
    expect(await runProgram(['check', '-c', pipe], folder)).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/:1:1 {2}.*4 MiB/),
    })
  })

  it('refuses a short file if its variables like ${…} make it larger than the limit', async () => {
    const LONG = 'x'.repeat(100_000)
    const lines = (count: number) => `auth: { issuer: "${'${LONG}'.repeat(count)}" }\n`
    expect(await check(write('long.yaml', lines(41)), { LONG })).toMatchObject({ exit: 0 })
    expect(await check(write('longer.yaml', lines(500_000)), { LONG })).toEqual(
      refused('longer.yaml:1:17', '4 MiB'),
    )
  })

  it.each(['[', '{a: ', '- ', '? '])('reports a problem if a file nests %j a million times', async step => {
    const text = `routes:\n${step.repeat(1_000_000)}`
    const { exit, stdout } = await check(write('deep.yaml', text.slice(0, 4 * MiB)))
    expect(exit).toBe(2)
    expect(stdout).toMatch(/^deep\.yaml:2:\d+ {2}\(file\) {2}.+\n$/)
  })

  it('prints the first 100 problems, and the number of problems that are not shown', async () => {
    const faults = (count: number) => `routes:\n${'  - { path: x }\n'.repeat(count)}`
    const lines = async (count: number) =>
      (await check(write('faults.yaml', faults(count)))).stdout.trimEnd().split('\n')
    expect(await lines(50)).toHaveLength(100)
    const many = await lines(60)
    expect(many).toHaveLength(101)
    expect(many[99]).toMatch(/^faults\.yaml:51:/)
    expect(many[100]).toContain('20')
  })
})

/** Returns the CPU seconds of one check. */
async function cost(text: string): Promise<number> {
  const file = write('cost.yaml', text)
  const before = process.cpuUsage()
  expect(await check(file)).toMatchObject({ exit: 0 })
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}

const upstream = `upstreams: { a: { targets: ['http://127.0.0.1:9000'] } }\n`
const times = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join('')

describe('the CPU time of a check', () => {
  const most = isFullMatrix ? 8_000 : 4_000
  it.each<[string, number, (count: number) => string]>([
    [
      'routes',
      most,
      count =>
        `${upstream}routes:\n${times(count, i => `- { path: /things-${i}/:id, upstream: a, auth: none }\n`)}`,
    ],
    [
      'hosts of one path',
      most,
      count =>
        `${upstream}routes:\n${times(count, i => `- { path: /, upstream: a, auth: none, hosts: [h${i}.test] }\n`)}`,
    ],
    [
      'wildcard hosts of one path',
      most,
      count =>
        `${upstream}routes:\n${times(count, i => `- { path: /, upstream: a, hosts: ['*.h${i}.test'] }\n`)}`,
    ],
    [
      'test cases',
      most,
      count => `tests:\n${times(count, i => `- { request: GET /${i}, expect: { status: 404 } }\n`)}`,
    ],
    [
      'aliases',
      most / 2,
      count =>
        `${upstream}routes:\n- { path: /x, upstream: &a a, auth: none }\n${times(count, i => `- { path: /${i}, upstream: *a }\n`)}`,
    ],
  ])('grows linearly with the number of %s', { timeout: 60_000 }, async (_, count, text) => {
    // A linear check takes 4 times as long for 4 times the input. A check of all pairs would take 16 times as long.
    await cost(text(count / 4))
    const some = await cost(text(count / 4))
    expect((await cost(text(count))) / some).toBeLessThan(9)
  })
})
