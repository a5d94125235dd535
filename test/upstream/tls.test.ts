// The gateway verifies the certificates of targets. `tls.ca` and `tls.server_name` change how it verifies them.
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectRefusal } from '../security/invariants.ts'
import { ask, requestBytes } from '../security/raw-client.ts'
import { courses, first } from '../support/certificates.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type MortalUpstream, startMortal } from './mortal-upstream.ts'

describe('https targets', () => {
  let named: MortalUpstream
  let numbered: MortalUpstream
  let gateway: TestGateway

  beforeAll(async () => {
    named = await startMortal('named', { cert: courses.cert, key: courses.key })
    numbered = await startMortal('numbered', { cert: first.cert, key: first.key })
    // The certificates are self-signed, so each certificate is its own certificate authority.
    const [byName, byAddress] = [courses.files.cert, first.files.cert]
    gateway = await startGateway(`upstreams:
  named: { targets: ['${named.url}'], tls: { ca: '${byName}', server_name: courses.internal } }
  nameless: { targets: ['${named.url}'], connections: 1, tls: { ca: '${byName}' } }
  misnamed: { targets: ['${named.url}'], connections: 1, tls: { ca: '${byName}', server_name: other.internal } }
  foreign: { targets: ['${named.url}'], connections: 1, tls: { ca: '${byAddress}', server_name: courses.internal } }
  unknown: { targets: ['${named.url}'], connections: 1, tls: { server_name: courses.internal } }
  numbered: { targets: ['${numbered.url}'], tls: { ca: '${byAddress}' } }
routes:
${['named', 'nameless', 'misnamed', 'foreign', 'unknown', 'numbered']
  .map(name => `  - { name: ${name}, path: /${name}, upstream: ${name}, auth: none }`)
  .join('\n')}
`)
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([named?.kill(), numbered?.kill()])
  })

  const get = (path: string) => ask(gateway.url, requestBytes('GET', path))

  it('are verified with the configured authority and server name', async () => {
    for (let i = 0; i < 3; i++) expect((await get('/named'))?.body.toString()).toBe('named')
    const [request] = named.received
    expect((request?.socket as TLSSocket | undefined)?.servername).toBe('courses.internal')
    // `server_name` changes only the name in the handshake. The Host header still contains the host of the target.
    expect(request?.headers.host).toBe(new URL(named.url).host)
    // All requests used one connection, so the server name was the same for all requests.
    expect(new Set(named.received.map(({ socket }) => socket)).size).toBe(1)
  })

  it('are verified with their IP address if the certificate contains this address', async () => {
    expect((await get('/numbered'))?.body.toString()).toBe('numbered')
  })

  it.each([
    ['without a server name', '/nameless'],
    ['with another server name', '/misnamed'],
    ['with another authority', '/foreign'],
    ['with an authority that Node does not trust', '/unknown'],
  ])('%s receive no request, and the client gets a 502', async (_, path) => {
    const before = named.received.length
    // The attempt is repeated, to check that a failed attempt does not use up the only connection.
    for (let i = 0; i < 3; i++) expectRefusal(await get(path), 'upstream_unreachable')
    expect(named.received.length).toBe(before)
  })
})
