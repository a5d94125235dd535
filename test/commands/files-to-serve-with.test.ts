// `peage check` reads what `start` will read, and `start` refuses it before it touches the database (CONTRACT §2).
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { first, second } from '../support/certificates.ts'
import { emptyFolder, runIn } from './peage.ts'

const cwd = emptyFolder()

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const privateJwk = ec.privateKey.export({ format: 'jwk' })
const files: Record<string, unknown> = {
  'sound.jwk': { ...privateJwk, kid: 'one' },
  'same-kid.jwk': {
    ...generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }),
    kid: 'one',
  },
  'text.jwk': 'no JSON',
  'pem.jwk': ec.privateKey.export({ format: 'pem', type: 'pkcs8' }),
  'set.jwk': { keys: [privateJwk] },
  'list.jwk': [privateJwk],
  'public.jwk': ec.publicKey.export({ format: 'jwk' }),
  'alg.jwk': { ...privateJwk, alg: 'RS256' },
  'enc.jwk': { ...privateJwk, use: 'enc' },
  'one.jwk': {
    ...generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }),
    ...{ e: 'AQ', d: 'AQ', dp: 'AQ', dq: 'AQ' },
  },
  'first.crt': first.cert,
  'second.key': second.key,
}
for (const [name, content] of Object.entries(files)) {
  writeFileSync(join(cwd, name), typeof content === 'string' ? content : JSON.stringify(content))
}
mkdirSync(join(cwd, 'folder.jwk'))

const data = join(cwd, 'data')

/** The line that prevents a start is line 2. */
function write(line: string): string {
  const rest = `upstreams: { a: { targets: ["http://a"] } }\nroutes: [{ path: /, upstream: a }]`
  const storage = line.startsWith('storage') ? '' : `storage: { data_dir: ${JSON.stringify(data)} }\n`
  writeFileSync(join(cwd, 'gateway.yaml'), `# one fault\n${line}\n${storage}${rest}\n`)
  return 'gateway.yaml'
}

// `start` listens for SIGHUP until its process ends.
const listening = process.listeners('SIGHUP')
afterEach(() => {
  for (const listener of process.listeners('SIGHUP')) {
    if (!listening.includes(listener)) process.off('SIGHUP', listener)
  }
})

const keys = (...names: string[]) => `auth: { keys: [${names.join(', ')}] }`

describe('what a gateway cannot start with, as check and start say it before the database is touched', () => {
  it.each([
    [keys('gone.jwk'), '2:16  auth.keys[0]  cannot read the file "gone.jwk" (no such file)'],
    [keys('folder.jwk'), '2:16  auth.keys[0]  cannot read the file "folder.jwk" (a folder)'],
    [keys('text.jwk'), '2:16  auth.keys[0]  names a file that is not JSON'],
    [keys('pem.jwk'), '2:16  auth.keys[0]  names a file that is not JSON'],
    [keys('list.jwk'), '2:16  auth.keys[0]  names a file that is not a JWK (a JSON object)'],
    [
      keys('set.jwk'),
      '2:16  auth.keys[0]  names a file that is of a type that does not sign here (EC P-256, OKP Ed25519 and RSA do)',
    ],
    [
      keys('sound.jwk', 'public.jwk'),
      '2:27  auth.keys[1]  names a file that is a public key where a private one is needed',
    ],
    [
      keys('alg.jwk'),
      '2:16  auth.keys[0]  names a file that says alg "RS256" where a key of its type signs ES256',
    ],
    [keys('enc.jwk'), '2:16  auth.keys[0]  names a file that is not for signing (its use is not "sig")'],
    [
      keys('one.jwk'),
      '2:16  auth.keys[0]  names a file that has a public exponent (e) that is not an odd number of 65537 or more',
    ],
    [
      keys('sound.jwk', 'same-kid.jwk'),
      '2:27  auth.keys[1]  names a key with the kid of auth.keys[0]; each needs one of its own',
    ],
    [
      'server: { tls: { cert: first.crt, key: second.key } }',
      '2:40  server.tls.key  is not the key of the certificate in server.tls.cert',
    ],
    [
      'storage: { postgres: "postgres://127.0.0.1:1/x?sslrootcert=gone.pem" }',
      '2:22  storage.postgres  has the sslrootcert "gone.pem", which cannot be read (no such file)',
    ],
    [
      'admin: { listen: "127.0.0.1:8080" }',
      '2:18  admin.listen  has the port of server.listen; give it another',
    ],
    [
      'server: { listen: ":::8081" }',
      '2:19  server.listen  must be HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080',
    ],
  ])('%s', async (line, problem) => {
    const file = write(line)
    const printed = `gateway.yaml:${problem}\n`
    expect(await runIn(cwd, ['check', '-c', file])).toEqual({ exit: 2, stdout: printed, stderr: '' })
    const started = await runIn(cwd, ['start', '-c', join(cwd, file)])
    expect(started).toMatchObject({ exit: 2, stdout: '' })
    expect(started.stderr.replace(cwd, '').replace(/^\//, '')).toBe(printed)
    expect(existsSync(data)).toBe(false)
  })

  it('traces that could not be sent are said along with what is wrong with the file', async () => {
    const file = write(keys('gone.jwk'))
    const env = { OTEL_TRACES_EXPORTER: 'zipkin' }
    const lines = [
      'gateway.yaml:2:16  auth.keys[0]  cannot read the file "gone.jwk" (no such file)',
      'OTEL_TRACES_EXPORTER: zipkin is not there; otlp and none are',
      '',
    ]
    for (const [command, output] of [
      ['check', 'stdout'],
      ['start', 'stderr'],
    ] as const) {
      const printed = await runIn(cwd, [command, '-c', file], { env })
      expect(printed.exit).toBe(2)
      expect(printed[output].split('\n')).toEqual(lines)
    }
    expect((await runIn(cwd, ['check', '-c', write('')], { env })).exit).toBe(2)
  })

  it('is nothing to commands that only use the stores, or none', async () => {
    const file = write(keys('gone.jwk'))
    expect((await runIn(cwd, ['explain', '-c', file, 'GET', '/'])).exit).toBe(0)
    expect((await runIn(cwd, ['users', 'list', '-c', file])).stderr).toMatch(/there is no database in/)
  })

  it('both listeners may have one port at two addresses, or one that the system chooses', async () => {
    for (const [clients, operators] of [
      ['127.0.0.1:9000', '127.0.0.2:9000'],
      ['127.0.0.1:0', '127.0.0.1:0'],
    ]) {
      const file = write(`server: { listen: "${clients}" }\nadmin: { listen: "${operators}" }`)
      expect((await runIn(cwd, ['check', '-c', file])).stdout).toBe(
        'gateway.yaml: ok (1 route, 1 upstream)\n',
      )
    }
    const file = write('server: { listen: "0.0.0.0:8081" }\nadmin: {}')
    expect((await runIn(cwd, ['check', '-c', file])).stdout).toContain(
      'gateway.yaml:2:19  server.listen  has the port of admin.listen; give it another',
    )
  })
})
