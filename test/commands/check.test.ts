// Tests `peage check`, `peage schema` and the help texts inside the test process, with real files.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { commandLine, committed, emptyFolder, runIn } from './peage.ts'

const { peage, write } = commandLine()

describe('peage check', () => {
  it('prints one line per problem, with the position of the problem in the file, and exits with 2', async () => {
    const golden = readFileSync(new URL('../config/golden/keys.txt', import.meta.url), 'utf8')
    const [, faults = '', printed = ''] = /^([^>]+)((?:> .*\n)+)/.exec(golden) ?? []
    const { exit, stdout, stderr } = await peage(['check', '-c', write('faults.yaml', faults)])
    expect({ exit, stderr }).toEqual({ exit: 2, stderr: '' })
    const placesOf = (text: string) => text.match(/(?<=^(?:> |faults\.yaml:))\d+:\d+ {2}\S+ {2}(?=.)/gm)
    expect(stdout.split('\n')).toHaveLength(printed.split('\n').length)
    expect(placesOf(stdout)).toEqual(placesOf(printed))
  })

  it('reads gateway.yaml by default, prints the number of routes and upstreams, and exits with 0', async () => {
    expect(await peage(['check'])).toEqual({
      exit: 2,
      stdout: expect.stringMatching(/^gateway\.yaml:1:1 {2}\(file\) {2}.+\n$/),
      stderr: '',
    })
    write('gateway.yaml', committed)
    expect(await peage(['check'])).toEqual({
      exit: 0,
      stdout: 'gateway.yaml: ok (4 routes, 1 upstream)\n',
      stderr: '',
    })
  })

  it('prints warnings, and exits with 0', async () => {
    const file = write('unused.yaml', 'upstreams: { a: { targets: ["http://a"] } }\n')
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }
    const { exit, stdout, stderr } = await peage(['check', '-c', file], env)
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' })
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^unused\.yaml:1:14 {2}upstreams\.a {2}warning: ./),
      expect.stringMatching(/^warning: OTEL_EXPORTER_OTLP_PROTOCOL: ./),
      'unused.yaml: ok (0 routes, 1 upstream)',
      '',
    ])
  })

  it('refuses an invalid OpenTelemetry variable with the same message as start, without the value of the variable', async () => {
    const file = write('traced.yaml', committed)
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_HEADERS: '"Authorization=Basic abc"',
    }
    const { exit, stdout } = await peage(['check', '-c', file], env)
    expect([exit, stdout]).toEqual([
      2,
      expect.stringMatching(/^OTEL_EXPORTER_OTLP_HEADERS: (?!.*Basic).+\n$/),
    ])
    expect(await peage(['start', '-c', file], env)).toEqual({ exit: 2, stdout: '', stderr: stdout })
  })

  it('replaces environment variables, and reads included files relative to the current folder', async () => {
    write('issuer', 'from-a-file\n')
    const file = write('env.yaml', 'auth:\n  issuer: ${file:issuer}\nlimits:\n  free_daily: ${N}\n')
    expect(await peage(['check', '--config', file], { N: '3' })).toMatchObject({ exit: 0 })
    expect(await peage(['check', '--config', file], { N: 'x' })).toEqual({
      exit: 2,
      stdout: expect.stringContaining('env.yaml:4:15  limits.free_daily  '),
      stderr: '',
    })
  })

  it('refuses a configuration or an included file that is not UTF-8', async () => {
    write('binary', Buffer.from([0x61, 0xff, 0x62]))
    const file = write('binary.yaml', 'auth:\n  key_secret: ${file:binary}\n')
    expect((await peage(['check', '-c', file])).stdout).toMatch(
      /^binary\.yaml:2:15 {2}auth\.key_secret {2}.*"binary".*\n$/,
    )
    const littleEndian = Buffer.from('\uFEFFlimits: { free_daily: 1 }\n', 'utf16le')
    for (const marked of [littleEndian, Buffer.from(littleEndian).swap16()]) {
      for (const bytes of [marked, marked.subarray(2)]) {
        const utf16 = write('utf16.yaml', bytes)
        expect(await peage(['check', '-c', utf16])).toEqual({
          exit: 2,
          stdout: expect.stringMatching(/^utf16\.yaml:1:1 {2}\(file\) {2}.+\n$/),
          stderr: '',
        })
      }
    }
  })
})

describe('peage', () => {
  const cwd = emptyFolder()

  it('schema prints the committed JSON Schema', async () => {
    const stdout = readFileSync(new URL('../../gateway.schema.json', import.meta.url), 'utf8')
    expect(await peage(['schema'])).toEqual({ exit: 0, stdout, stderr: '' })
  })

  it.each([
    ['EPIPE', ['schema'], 0, ''],
    ['EPIPE', ['--help'], 0, ''],
    ['EPIPE', ['check', '-c', 'right.yaml'], 0, ''],
    ['EPIPE', ['check', '-c', 'wrong.yaml'], 2, ''],
    ['EPIPE', ['explain', 'GET', '/nothing', '-c', 'right.yaml'], 1, ''],
    ['ENOSPC', ['schema'], 1, 'error: ENOSPC\n'],
    ['ENOSPC', ['check', '-c', 'right.yaml'], 1, 'error: ENOSPC\n'],
  ])(
    'if a write to standard output fails with %s, the command %j exits with %i',
    async (code, words, exit, stderr) => {
      writeFileSync(join(cwd, 'right.yaml'), committed)
      writeFileSync(join(cwd, 'wrong.yaml'), 'routes: 1\n')
      const stdout = new Writable({
        write: (_chunk, _encoding, done) => done(Object.assign(new Error(code), { code })),
      })
      expect(await runIn(cwd, words, { stdout })).toMatchObject({ exit, stderr })
    },
  )

  it('--version prints the version of the package, and --help lists the commands', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(await peage(['--version'])).toEqual({ exit: 0, stdout: `${version}\n`, stderr: '' })
    expect(await peage(['--help'])).toMatchObject({
      exit: 0,
      stdout: expect.stringMatching(/check.*schema/s),
      stderr: '',
    })
    expect(await peage(['check', '--help'])).toMatchObject({
      exit: 0,
      stdout: expect.stringContaining('--config <file>'),
    })
  })

  it('--help shows the arguments and options of each command', async () => {
    const { stdout } = await peage(['--help'])
    const usages = stdout.split('Commands:')[1]?.match(/(?<=^ {2})\S+( \S+)*/gm)
    expect(usages).toEqual([
      'init [file]',
      'start [options]',
      'check [options]',
      'explain [options] <method> <path>',
      'test [options] [cases]',
      'migrate [options]',
      'schema',
      'users',
      'plans',
      'providers',
      'mail',
      'keys',
      'help [command]',
    ])
  })

  it.each([
    [['chek'], 'Did you mean check?'],
    [['check', '--confg', 'x'], 'Did you mean --config?'],
    [['check', '-c'], 'argument missing'],
    [['check', 'g.yaml'], "too many arguments for 'check'; did you mean peage check -c g.yaml?"],
    [['start', 'g.yaml'], 'did you mean peage start -c g.yaml?'],
    [['migrate', 'g.yaml'], 'did you mean peage migrate -c g.yaml?'],
    [['check', 'one', 'more'], "too many arguments for 'check'\n"],
    [['--nope'], 'unknown option'],
    [[], 'Usage: peage'],
  ])('refuses %j with a message on standard error and exit code 2', async (words, sentence) => {
    expect(await peage(words)).toMatchObject({
      exit: 2,
      stdout: '',
      stderr: expect.stringContaining(sentence),
    })
  })
})
