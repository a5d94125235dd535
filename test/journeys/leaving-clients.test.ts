// If clients disconnect or stall, the gateway frees their upstream connections for other clients. Also tests the drain.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { beforeEach, describe, expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'

/** More bytes than all socket buffers between upstream and client can hold. */
const large = Buffer.alloc(64 * 1024 * 1024, 'x')

function routes(upstream: string): string {
  return `upstreams:
  echo: { targets: ['${upstream}'], connections: 2, timeouts: { connect: 300ms } }
routes:
  - { name: guarded, path: /guarded, upstream: echo, free_daily: true }
  - { name: public, path: /public/*, upstream: echo, auth: none }
`
}

async function open(base: string): Promise<Socket> {
  const { hostname, port } = new URL(base)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

async function isClosed(base: string): Promise<boolean> {
  try {
    const socket = await open(base)
    socket.destroy()
    return false
  } catch {
    return true
  }
}

describe('clients that leave', () => {
  const at = journey(embeddedSetup, { server: ', timeouts: { body_idle: 500ms }' }, routes)
  beforeEach(() => {
    at.upstream.answer = (_request, response) => response.end(large)
  })
  const get = (path: string, token?: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${token ?? ''}\r\n`

  /** Checks that both connections to the upstream are free. Otherwise, one of the two requests would get a 503. */
  async function isServed(): Promise<void> {
    at.upstream.answer = undefined
    const answers = await Promise.all([1, 2].map(n => call(at.gateway.url, 'GET', `/public/${n}`)))
    expect(answers.map(answer => answer.status)).toEqual([200, 200])
  }

  it('use up no upstream connection if they disconnect while the guards check the request', async () => {
    const { access } = await newUser(at.gateway, 'pro')
    for (let i = 0; i < 10; i++) {
      const socket = await open(at.gateway.url)
      socket.write(get('/guarded', `Authorization: Bearer ${access}\r\n`))
      await new Promise(resolve => setImmediate(resolve))
      socket.resetAndDestroy()
    }
    await isServed()
  })

  it('are disconnected if they read nothing, and then other clients are served again', async () => {
    let asked = 0
    at.upstream.answer = (request, response) => {
      if (request.url === '/public/big') asked += 1
      response.end(request.url === '/public/big' ? large : '')
    }
    const sockets = await Promise.all([open(at.gateway.url), open(at.gateway.url)])
    for (const socket of sockets) {
      socket.pause()
      socket.write(get('/public/big'))
    }
    await expect.poll(() => asked).toBe(2)
    const refused = await call(at.gateway.url, 'GET', '/public/x')
    expect([refused.status, refused.body]).toEqual([503, { error: 'Service amont indisponible' }])
    await expect
      .poll(() => call(at.gateway.url, 'GET', '/public/x').then(answer => answer.status), { timeout: 5_000 })
      .toBe(200)
    for (const socket of sockets) socket.destroy()
    await isServed()
  })

  it('cause no internal error in the log if they leave during a request to a built-in endpoint', async () => {
    const socket = await open(at.gateway.url)
    socket.write('POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{')
    socket.destroy()
    await expect
      .poll(() => at.gateway.log.some(line => line.includes('"client_gone"') && line.includes('auth/login')))
      .toBe(true)
    expect(at.gateway.log.filter(line => line.includes('"internal"'))).toEqual([])
  })

  it('have no password in the log, even if their request line contains a URL with a password', async () => {
    const socket = await open(at.gateway.url)
    socket.write('GET http://user:s3cretpw@x/public/y HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(socket, 'data')
    await expect.poll(() => at.gateway.log.join('')).toContain('"path":"/public/y"')
    expect(at.gateway.log.join('')).not.toContain('s3cretpw')
    socket.destroy()
  })
})

describe('a drain', () => {
  const at = journey(embeddedSetup, {}, routes)

  /**
   * Runs `work` with a new gateway, then stops the gateway. When the first request reaches the upstream, `asked`
   * resolves to a `ServerResponse`. With this object, `work` sends the response of the upstream.
   */
  async function drained(
    work: (gateway: TestGateway, asked: Promise<ServerResponse>) => Promise<void>,
  ): Promise<void> {
    const gateway = await startGateway(routes(at.upstream.url), undefined, { drainTimeout: '10s' })
    const asked = new Promise<ServerResponse>(resolve => {
      at.upstream.answer = (_request, response) => resolve(response)
    })
    await work(gateway, asked)
    await gateway.stop()
  }
  const openStream = (response: ServerResponse) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')

  it('ends event streams, and waits only briefly for a connection without a request or with an incomplete request head', () =>
    drained(async (gateway, asked) => {
      asked.then(openStream)
      const stream = await fetch(`${gateway.url}/public/events`)
      const half = await open(gateway.admin)
      half.write('GET /healthz HTTP/1.1\r\nHost')
      const silent = await open(gateway.url)
      const text = stream.text()
      const started = performance.now()
      await gateway.stop()
      // The two listeners close one after the other, and each takes up to one second.
      expect(performance.now() - started).toBeLessThan(4_000)
      expect(await text).toBe('data: 1\n\n')
      half.destroy()
      silent.destroy()
    }))

  it('makes /readyz and /readyz?for=public return 503, while /healthz still returns 200', () =>
    drained(async (gateway, asked) => {
      const ready = async (query: string) => {
        const { status, body } = await call(gateway.admin, 'GET', `/readyz${query}`)
        return [status, body.status, (body.checks as Record<string, unknown>).listener]
      }
      const both = () => Promise.all(['', '?for=public'].map(ready))
      expect(await both()).toEqual(Array(2).fill([200, 'ok', undefined]))
      const slow = call(gateway.url, 'GET', '/public/slow')
      const response = await asked
      const stopped = gateway.stop()
      await expect.poll(() => isClosed(gateway.url), { timeout: 5_000 }).toBe(true)
      expect(await both()).toEqual(Array(2).fill([503, 'down', 'down']))
      expect((await call(gateway.admin, 'GET', '/healthz')).status).toBe(200)
      const { body } = await call(gateway.admin, 'GET', '/admin/v1/overview', { token: gateway.adminToken })
      expect(body.stores).toEqual({ postgres: 'ok' })
      response.end()
      expect((await slow).status).toBe(200)
      await stopped
    }))

  it('ends an event stream that opens during the drain', () =>
    drained(async (gateway, asked) => {
      const stream = fetch(`${gateway.url}/public/events`).then(answer => answer.status)
      const response = await asked
      const started = performance.now()
      const stopped = gateway.stop()
      openStream(response)
      expect(await stream).toBe(200)
      await stopped
      expect(performance.now() - started).toBeLessThan(3_000)
    }))

  it('completes requests to the admin listener, even if their head or body is still arriving', () =>
    drained(async gateway => {
      const { id } = await newUser(gateway)
      const body = '{"plan":"pro"}'
      const credential = `Authorization: Bearer ${gateway.adminToken}\r\n`
      const patch = await open(gateway.admin)
      const probe = await open(gateway.admin)
      const answers = Promise.all([patch, probe].map(async socket => String(await once(socket, 'data'))))
      patch.write(
        `PATCH /admin/v1/users/${id} HTTP/1.1\r\nHost: localhost\r\n${credential}Content-Length: ${body.length}\r\n\r\n`,
      )
      probe.write('GET /healthz HTTP/1.1\r\nHost: ')
      const stopped = gateway.stop()
      await expect.poll(() => isClosed(gateway.admin), { timeout: 5_000 }).toBe(true)
      patch.write(body)
      probe.write('localhost\r\n\r\n')
      const [changed, health] = await answers
      expect(changed).toContain('"plan":"pro"')
      expect(health).toContain('{"status":"ok"}')
      await stopped
    }))
})
