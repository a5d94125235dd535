// The gateway logs requests of pages whose origin is not listed in `cors`. Without this log, only browsers show the
// error.
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { handshake } from '../support/web-sockets.ts'

const listed = 'https://app.example.com'
const routes = (upstream: string) => `upstreams: { app: { targets: ['${upstream}'] } }
routes:
  - { name: public, path: /public, upstream: app, auth: none, websocket: true }
  - { name: mine, path: /mine, upstream: app }
  - { name: partner, path: /partner, upstream: app, auth: none, cors: { origins: ['https://partner.example'] } }
`

let upstream: Upstream
let gateway: TestGateway
let plain: TestGateway
beforeAll(async () => {
  upstream = await startUpstream()
  gateway = await startGateway(routes(upstream.url), undefined, {
    server: `, cors: { origins: ['${listed}'] }`,
  })
  const withoutCors = routes(upstream.url).replace(/, cors: \{[^}]+\}/, '')
  plain = await startGateway(withoutCors)
})
afterAll(async () => {
  await Promise.all([gateway?.stop(), plain?.stop()])
  await upstream?.close()
})

/**
 * Uses `node:http`, because `fetch` sets `Origin` and Fetch Metadata headers itself. Waits until
 * the gateway has logged the request.
 */
async function send(at: TestGateway, path: string, headers: Record<string, string>, method = 'GET') {
  const id = randomUUID()
  await new Promise((resolve, reject) => {
    const all = { ...headers, 'x-request-id': id }
    request(at.url + path, { method, headers: all }, response => response.resume().on('end', resolve))
      .on('error', reject)
      .end()
  })
  await expect.poll(() => at.log.some(line => line.includes(id))).toBe(true)
}

const linesOf = (at: TestGateway, origin: string) =>
  at.log
    .map(line => JSON.parse(line) as Record<string, unknown>)
    .filter(line => line.origin === origin && String(line.msg).startsWith('request from a page'))

let made = 0
const newOrigin = () => {
  made += 1
  // The gateway limits these log lines per minute, so each test moves the clock to a new minute.
  gateway.clock.at += 60_000
  plain.clock.at += 60_000
  return `https://page${made}.example`
}

describe('a page whose origin is not listed in `cors`', () => {
  it('is logged once per minute at level `info`, with the configuration key to change', async () => {
    const origin = newOrigin()
    await send(gateway, '/public', { origin })
    await send(gateway, '/mine', { origin })
    expect(linesOf(gateway, origin)).toMatchObject([
      {
        level: 30,
        origin,
        key: 'server.cors.origins',
        route: 'public',
        msg: 'request from a page whose origin is not in cors.origins',
      },
    ])
    gateway.clock.at += 60_000
    await send(gateway, '/public', { origin })
    expect(linesOf(gateway, origin)).toHaveLength(2)
  })

  it.each([
    ['a request', 'GET', {}],
    ['a preflight', 'OPTIONS', { 'access-control-request-method': 'GET' }],
  ])(
    'is logged after %s to a route with its own cors settings, with the configuration key of this route',
    async (_, method, more) => {
      const origin = newOrigin()
      await send(gateway, '/partner', { origin, ...more }, method)
      expect(linesOf(gateway, origin)).toMatchObject([
        { key: 'routes.partner.cors.origins', route: 'partner' },
      ])
    },
  )

  it.each([
    ['a built-in endpoint', '/api/v1/auth/login'],
    ['an unknown path', '/nowhere'],
  ])('is logged for a preflight to %s', async (_, path) => {
    const origin = newOrigin()
    await send(gateway, path, { origin, 'access-control-request-method': 'POST' }, 'OPTIONS')
    expect(linesOf(gateway, origin)).toMatchObject([{ key: 'server.cors.origins' }])
    expect(linesOf(gateway, origin)[0]).not.toHaveProperty('route')
  })

  it('if `cors` is not configured, is logged only for responses that the gateway itself creates', async () => {
    const origin = newOrigin()
    await send(plain, '/public', { origin })
    expect(linesOf(plain, origin)).toEqual([])
    await send(plain, '/mine', { origin, 'access-control-request-method': 'GET' }, 'OPTIONS')
    expect(linesOf(plain, origin)).toMatchObject([
      {
        key: 'server.cors.origins',
        msg: 'request from a page of another origin, but cors is not configured',
      },
    ])
  })

  it('is logged, but listed pages, same-origin pages, navigations and WebSockets are not', async () => {
    const origin = newOrigin()
    const before = gateway.log.length
    const own = new URL(gateway.url).origin
    await send(gateway, '/public', { origin: listed })
    await send(gateway, '/public', { origin: own })
    await send(gateway, '/public', { origin, 'sec-fetch-site': 'same-origin' })
    await send(gateway, '/public', { origin, 'sec-fetch-mode': 'navigate' })
    const connection = new RawConnection(gateway.url)
    connection.write(requestBytes('GET', '/public', [...handshake, `Origin: ${origin}`]))
    await connection.answer()
    connection.close()
    await expect
      .poll(() => gateway.log.slice(before).filter(line => line.includes('"request"')).length)
      .toBe(5)
    expect(gateway.log.slice(before).filter(line => line.includes('request from a page'))).toEqual([])
  })

  it.each([
    'null',
    'nonsense',
    'https://a.example/path',
    `https://${'a'.repeat(400)}.example`,
    'https://a.example, https://b.example',
    'https://\u0080\u009b.example',
  ])('is not logged if its origin is %j, because cors cannot list such an origin', async origin => {
    newOrigin()
    const before = gateway.log.length
    const connection = new RawConnection(gateway.url)
    connection.write(requestBytes('GET', '/public', [`Origin: ${origin}`]))
    expect((await connection.answer())?.status).toBe(200)
    connection.close()
    await expect.poll(() => gateway.log.slice(before).some(line => line.includes('"request"'))).toBe(true)
    expect(gateway.log.slice(before).filter(line => line.includes('request from a page'))).toEqual([])
  })

  it('is logged at most 20 times per minute, even if a client invents many origins', async () => {
    newOrigin()
    const before = gateway.log.length
    for (let i = 0; i < 50; i += 1) await send(gateway, '/public', { origin: `https://invented${i}.example` })
    const lines = () => gateway.log.slice(before).filter(line => line.includes('request from a page'))
    expect(lines()).toHaveLength(20)
    gateway.clock.at += 60_000
    await send(gateway, '/public', { origin: 'https://invented49.example' })
    expect(lines()).toHaveLength(21)
  })
})
