// `peage check` and `peage schema`, run as functions on real files.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { commandLine, committed, emptyFolder, runIn } from './peage.ts'

const { peage, write } = commandLine()

const TEN_FAULTS = `server:
  listen: \${HOST}:8080
  lisen: 0.0.0.0:80
  timeouts: { headers: 10 seconds }
limits:
  free_daily: 1
  free_daily: 2
upstreams:
  courses:
    targets: [http://127.0.0.1:9000/v2]
routes:
  - path: /api/v1/courses/*
    upstream: course
  - path: /public
    upstream: courses
    auth: none
    plans: [pro]
  - path: /api/v1/auth/login
    upstream: courses
    auth: requird
  - upstream: courses
`

describe('peage check', () => {
  it('prints one line for each of ten different faults, at its line and column, and exits 2', async () => {
    const { exit, stdout, stderr } = await peage(['check', '-c', write('faults.yaml', TEN_FAULTS)])
    expect(stdout.split('\n')).toEqual([
      'faults.yaml:2:11  server.listen  needs HOST, which is not set in the environment; set it or write ${HOST:-default}',
      'faults.yaml:3:3  server.lisen  unknown key; did you mean listen?',
      'faults.yaml:4:24  server.timeouts.headers  must be a duration such as 250ms, 30s, 15m or 2h',
      'faults.yaml:7:3  limits.free_daily  is set twice in the same mapping; keep one',
      'faults.yaml:10:15  upstreams.courses.targets[0]  must not have a path; strip_prefix or rewrite on the route changes paths',
      'faults.yaml:13:15  routes[0].upstream  names no declared upstream; did you mean courses?',
      'faults.yaml:17:12  routes[1].plans  needs a user: make auth required or optional, or leave it out',
      'faults.yaml:18:11  routes[2].path  belongs to the gateway itself and cannot be declared',
      'faults.yaml:20:11  routes[2].auth  must be required, optional or none; did you mean required?',
      'faults.yaml:21:5  routes[3].path  is required: a path such as /api/v1/courses/*',
      '',
    ])
    expect(exit).toBe(2)
    expect(stderr).toBe('')
  })

  it('takes gateway.yaml where no file is named, counts what it found, and exits 0', async () => {
    expect(await peage(['check'])).toEqual({
      exit: 2,
      stdout: 'gateway.yaml:1:1  (file)  cannot be read (no such file); peage init writes a sample\n',
      stderr: '',
    })
    write('gateway.yaml', committed)
    expect(await peage(['check'])).toEqual({
      exit: 0,
      stdout: 'gateway.yaml: ok (4 routes, 1 upstream)\n',
      stderr: '',
    })
  })

  it('prints warnings beside what it found, and exits 0 all the same', async () => {
    const file = write('unused.yaml', 'upstreams: { a: { targets: ["http://a"] } }\n')
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }
    expect(await peage(['check', '-c', file], env)).toEqual({
      exit: 0,
      stdout:
        'unused.yaml:1:14  upstreams.a  warning: no route leads to it\n' +
        'warning: OTEL_EXPORTER_OTLP_PROTOCOL: traces are sent as http/json, which collectors take at the same address\n' +
        'unused.yaml: ok (0 routes, 1 upstream)\n',
      stderr: '',
    })
  })

  it('and start refuse a variable of OpenTelemetry that cannot work, without its value', async () => {
    const file = write('traced.yaml', committed)
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_HEADERS: '"Authorization=Basic abc"',
    }
    const sentence = 'OTEL_EXPORTER_OTLP_HEADERS: begins with a quotation mark; write name=value without it\n'
    expect(await peage(['check', '-c', file], env)).toEqual({ exit: 2, stdout: sentence, stderr: '' })
    expect(await peage(['start', '-c', file], env)).toEqual({ exit: 2, stdout: '', stderr: sentence })
  })

  it('refuses a key_secret that is too short to be one, and takes none', async () => {
    for (const [secret, exit] of [
      ['abc', 2],
      ['fifteen-letters', 2],
      ['sixteen-letters!', 0],
      ['', 0],
    ] as const) {
      const file = write('secret.yaml', 'auth: { key_secret: "${S}" }\n')
      const printed = await peage(['check', '-c', file], { S: secret })
      expect(printed.exit).toBe(exit)
      if (exit === 2) {
        expect(printed.stdout).toBe(
          'secret.yaml:1:21  auth.key_secret  is shorter than 16 characters; take a long random one (openssl rand -base64 32)\n',
        )
      }
    }
  })

  it('reads the environment and files from where it was called', async () => {
    write('issuer', 'from-a-file\n')
    const file = write('env.yaml', 'auth:\n  issuer: ${file:issuer}\nlimits:\n  free_daily: ${N}\n')
    expect(await peage(['check', '--config', file], { N: '3' })).toMatchObject({ exit: 0 })
    expect(await peage(['check', '--config', file], { N: 'x' })).toEqual({
      exit: 2,
      stdout: 'env.yaml:4:15  limits.free_daily  must be a whole number\n',
      stderr: '',
    })
  })

  it('takes neither a file nor a secret that is not UTF-8 for the text that is left of it', async () => {
    write('binary', Buffer.from([0x61, 0xff, 0x62]))
    const file = write('binary.yaml', 'auth:\n  key_secret: ${file:binary}\n')
    expect((await peage(['check', '-c', file])).stdout).toBe(
      'binary.yaml:2:15  auth.key_secret  cannot read the file "binary" (not UTF-8 text)\n',
    )
    const littleEndian = Buffer.from('\uFEFFlimits: { free_daily: 1 }\n', 'utf16le')
    for (const marked of [littleEndian, Buffer.from(littleEndian).swap16()]) {
      for (const bytes of [marked, marked.subarray(2)]) {
        const utf16 = write('utf16.yaml', bytes)
        expect(await peage(['check', '-c', utf16])).toEqual({
          exit: 2,
          stdout: 'utf16.yaml:1:1  (file)  cannot be read (not UTF-8 text)\n',
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
  ])('whose output fails with %s: %j exits with %i', async (code, words, exit, stderr) => {
    writeFileSync(join(cwd, 'right.yaml'), committed)
    writeFileSync(join(cwd, 'wrong.yaml'), 'routes: 1\n')
    const stdout = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error(code), { code })),
    })
    expect(await runIn(cwd, words, { stdout })).toMatchObject({ exit, stderr })
  })

  it('--version is the package’s, --help names the commands, both exit 0', async () => {
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

  it('--help shows what each command takes, and of those without arguments none', async () => {
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
  ])('%j is a bad command line: said on standard error, exit 2', async (words, sentence) => {
    expect(await peage(words)).toMatchObject({
      exit: 2,
      stdout: '',
      stderr: expect.stringContaining(sentence),
    })
  })
})
