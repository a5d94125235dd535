// Tests that `check` reads all files that `start` needs, and that `start` refuses invalid files before it uses the
// database.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { first, second } from '../support/certificates.ts'
import { emptyFolder, runIn } from './peage.ts'

const cwd = emptyFolder()

writeFileSync(join(cwd, 'text.jwk'), 'no JSON')
writeFileSync(join(cwd, 'first.crt'), first.cert)
writeFileSync(join(cwd, 'second.key'), second.key)
mkdirSync(join(cwd, 'folder.jwk'))

const data = join(cwd, 'data')

/** Writes a configuration with `line` as its second line. The other lines are valid. */
function write(line: string): string {
  const rest = `upstreams: { a: { targets: ["http://a"] } }\nroutes: [{ path: /, upstream: a }]`
  const storage = line.startsWith('storage') ? '' : `storage: { data_dir: ${JSON.stringify(data)} }\n`
  writeFileSync(join(cwd, 'gateway.yaml'), `# one fault\n${line}\n${storage}${rest}\n`)
  return 'gateway.yaml'
}

// Removes the SIGHUP listeners of `start`, because `start` itself never removes them.
const listening = process.listeners('SIGHUP')
afterEach(() => {
  for (const listener of process.listeners('SIGHUP')) {
    if (!listening.includes(listener)) process.off('SIGHUP', listener)
  }
})

const missingKey = 'auth: { keys: [gone.jwk] }'

describe('a configuration that prevents the start of a gateway', () => {
  it.each([
    [missingKey, '2:16  auth.keys[0]  '],
    ['auth: { keys: [folder.jwk] }', '2:16  auth.keys[0]  '],
    ['auth: { keys: [text.jwk] }', '2:16  auth.keys[0]  '],
    ['server: { tls: { cert: first.crt, key: second.key } }', '2:40  server.tls.key  '],
    ['storage: { postgres: "postgres://127.0.0.1:1/x?sslrootcert=gone.pem" }', '2:22  storage.postgres  '],
    ['admin: { listen: "127.0.0.1:8080" }', '2:18  admin.listen  '],
    ['server: { listen: ":::8081" }', '2:19  server.listen  '],
  ])(
    'makes `check` and `start` print the same problem, and `start` does not create a database: %s',
    async (line, place) => {
      const file = write(line)
      const checked = await runIn(cwd, ['check', '-c', file])
      expect(checked).toMatchObject({ exit: 2, stderr: '' })
      expect(checked.stdout.split(place)).toEqual(['gateway.yaml:', expect.stringMatching(/^.+\n$/)])
      const started = await runIn(cwd, ['start', '-c', join(cwd, file)])
      expect(started).toMatchObject({ exit: 2, stdout: '' })
      expect(started.stderr).toBe(`${cwd}/${checked.stdout}`)
      expect(existsSync(data)).toBe(false)
    },
  )

  it('makes check and start print first the problems of the file, then the problems of the tracing variables', async () => {
    const file = write(missingKey)
    const env = { OTEL_TRACES_EXPORTER: 'zipkin' }
    const alone = await runIn(cwd, ['check', '-c', file])
    const lines = `${alone.stdout}OTEL_TRACES_EXPORTER: zipkin is not supported. Use otlp or none.\n`
    expect(await runIn(cwd, ['check', '-c', file], { env })).toEqual({ exit: 2, stdout: lines, stderr: '' })
    expect(await runIn(cwd, ['start', '-c', file], { env })).toEqual({ exit: 2, stdout: '', stderr: lines })
    expect((await runIn(cwd, ['check', '-c', write('')], { env })).exit).toBe(2)
  })

  it('has no effect on commands that do not read the invalid file', async () => {
    const file = write(missingKey)
    expect((await runIn(cwd, ['explain', '-c', file, 'GET', '/'])).exit).toBe(0)
    expect((await runIn(cwd, ['users', 'list', '-c', file])).stderr).toMatch(/there is no database in/)
  })
})
