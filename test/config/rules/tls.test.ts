// `server.tls`: what `check` reports about the files, at the line and column that name them.
import { describe, expect, it } from 'vitest'
import { formatDiagnostic } from '../../../src/config/diagnostics.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { first, second } from '../../support/certificates.ts'

const encrypted = '-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n'

/** Line 2 names both files. */
const yaml = `server:
  tls: { cert: tls.crt, key: tls.key }
upstreams: { a: { targets: ['http://a'] } }
routes: [{ path: /, upstream: a }]
`

function problemsWith(files: Record<string, string>, toServe = true): string[] {
  const readFile = (path: string) => {
    const text = { 'gateway.yaml': yaml, ...files }[path]
    if (text === undefined) throw Object.assign(new Error('gone'), { code: 'ENOENT' })
    return text
  }
  const loaded = loadConfig({ file: 'gateway.yaml', env: {}, readFile, toServe })
  return 'problems' in loaded ? loaded.problems.map(formatDiagnostic) : []
}

const at = { cert: 'gateway.yaml:2:16  server.tls.cert  ', key: 'gateway.yaml:2:30  server.tls.key  ' }

describe('the files of server.tls', () => {
  it('are fine where they belong together', () => {
    expect(problemsWith({ 'tls.crt': first.cert, 'tls.key': first.key })).toEqual([])
    expect(problemsWith({ 'tls.crt': first.cert + second.cert, 'tls.key': first.key })).toEqual([])
  })

  it.each([
    [
      'missing',
      {},
      [
        `${at.cert}cannot read the file "tls.crt" (no such file)`,
        `${at.key}cannot read the file "tls.key" (no such file)`,
      ],
    ],
    [
      'exchanged',
      { 'tls.crt': first.key, 'tls.key': first.cert },
      [`${at.cert}holds no certificate in PEM`, `${at.key}holds no private key in PEM`],
    ],
    [
      'of two pairs',
      { 'tls.crt': first.cert, 'tls.key': second.key },
      [`${at.key}is not the key of the certificate in server.tls.cert`],
    ],
    [
      'encrypted',
      { 'tls.crt': first.cert, 'tls.key': encrypted },
      [`${at.key}holds a key that is encrypted with a passphrase; decrypt it`],
    ],
  ])('are faults where they are %s', (_, files, problems) => {
    expect(problemsWith(files)).toEqual(problems)
  })

  it('are nothing to commands that do not serve', () => {
    expect(problemsWith({}, false)).toEqual([])
  })
})
