// Each health check of an https target ends, and the next check follows, no matter what certificate the target has.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectRefusal } from '../../security/invariants.ts'
import { ask, requestBytes } from '../../security/raw-client.ts'
import { courses, expired, first, second, type TestCertificate } from '../../support/certificates.ts'
import { call } from '../../support/client.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'

describe('health checks of an https target', () => {
  const sockets = new Set<Socket>()
  const service = createTlsServer(courses, (_, response) => response.end('ok'))
  service.on('tlsClientError', () => {})
  let isHanging = false
  let connections = 0
  const listener = createServer(socket => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    if (!isHanging) service.emit('connection', socket)
  })
  let folder: string
  let gateway: TestGateway

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'peage-health-'))
    // Each certificate is self-signed, so it is its own certificate authority. `second` is missing here, so the gateway
    // does not trust it.
    const authorities = join(folder, 'authorities.pem')
    await writeFile(authorities, [courses, first, expired].map(({ cert }) => cert).join('\n'))
    await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
    const { port } = listener.address() as AddressInfo
    gateway = await startGateway(`upstreams:
  app:
    targets: ['https://127.0.0.1:${port}']
    tls: { ca: '${authorities}', server_name: courses.internal }
    health: { path: /health, interval: 50ms, timeout: 300ms, unhealthy_after: 2 }
routes:
  - { name: app, path: /app, upstream: app, auth: none }
`)
  })
  afterAll(async () => {
    await gateway?.stop()
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => listener.close(resolve))
    await rm(folder, { recursive: true })
  })

  async function checks(): Promise<string | undefined> {
    const { text } = await call(gateway.admin, 'GET', '/admin/v1/routes', { token: gateway.adminToken })
    return /"checks":"(\w+)"/.exec(text)?.[1]
  }
  const show = ({ cert, key }: TestCertificate) => service.setSecureContext({ cert, key })

  it.each([
    ['for another name', () => show(first)],
    ['that has expired', () => show(expired)],
    ['from an unknown authority', () => show(second)],
  ])(
    'fail but continue while the target has a certificate %s, and pass when the certificate is replaced',
    async (_, fail) => {
      await expect.poll(checks).toBe('passing')
      fail()
      await expect.poll(checks).toBe('failing')
      const before = connections
      await expect.poll(() => connections).toBeGreaterThan(before + 3)
      expectRefusal(await ask(gateway.url, requestBytes('GET', '/app')), 'upstream_unavailable')
      show(courses)
      await expect.poll(checks).toBe('passing')
      expect((await ask(gateway.url, requestBytes('GET', '/app')))?.body.toString()).toBe('ok')
    },
  )

  it('fail but continue while handshakes hang, and pass when handshakes succeed again', async () => {
    await expect.poll(checks).toBe('passing')
    isHanging = true
    await expect.poll(checks).toBe('failing')
    const before = connections
    await expect.poll(() => connections).toBeGreaterThan(before + 3)
    isHanging = false
    await expect.poll(checks).toBe('passing')
  })

  it('end within their timeout while a handshake hangs', async () => {
    isHanging = true
    const before = connections
    const start = performance.now()
    await expect.poll(() => connections, { interval: 5 }).toBeGreaterThan(before + 4)
    // Four checks take 1.4 s: 300 ms each, with pauses of 50 ms. With undici's own timer, each connect could time out a
    // second late.
    expect(performance.now() - start).toBeLessThan(4 * 1_000)
    isHanging = false
  })
})
