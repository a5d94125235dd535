// Checks the request, the address and the outcome of a single delivery to a real receiver over TLS.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { first } from '../../support/certificates.ts'
import { empty, loopback, open, receiver, senderOver } from './sending.ts'

describe('a delivery', () => {
  it('is one POST request with the given headers and body, to the unchanged path and query of the URL', async () => {
    let seen: { request: IncomingMessage; body: string; serverName: unknown } | undefined
    const { port } = await receiver(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const { servername: serverName } = request.socket as { servername?: unknown }
      seen = { request, body: Buffer.concat(chunks).toString(), serverName }
      response.writeHead(202).end('taken')
    })
    const send = await senderOver(loopback('hooks.test'))
    const outcome = await send(`HTTPS://HOOKS.test:${port}/a%2fb?c=d&e=%20#f`)
    expect(outcome).toEqual({ kind: 'answered', status: 202 })
    expect(seen?.request.method).toBe('POST')
    expect(seen?.request.url).toBe('/a%2fb?c=d&e=%20')
    expect(seen?.body).toBe('{"a":"é"}')
    expect(seen?.request.headers).toEqual({
      host: `hooks.test:${port}`,
      connection: 'close',
      'webhook-id': 'msg_1',
      'content-length': '10',
    })
    expect(seen?.serverName).toBe('hooks.test')
  })

  it('uses a new connection and closes it', async () => {
    const target = await receiver(empty)
    const send = await senderOver(loopback('hooks.test'))
    for (let i = 0; i < 5; i += 1) await send(`https://hooks.test:${target.port}/`)
    expect(target.connections).toBe(5)
    await expect.poll(() => target.open).toBe(0)
  })

  it('reaches a literal IP address that is in the certificate', async () => {
    const target = await receiver(empty, first)
    const send = await senderOver({}, { ca: first.cert })
    expect(await send(`https://127.0.0.1:${target.port}/`)).toEqual({ kind: 'answered', status: 200 })
    expect(await send(`https://0x7f.1:${target.port}/`)).toEqual({ kind: 'answered', status: 200 })
  })

  it('tries the next address if a connection fails', async () => {
    const target = await receiver(empty)
    const send = await senderOver({ 'hooks.test': ['127.0.0.2', '::1', '127.0.0.1'] })
    expect(await send(`https://hooks.test:${target.port}/`)).toEqual({ kind: 'answered', status: 200 })
  })

  it('tries at most four addresses of a host', async () => {
    const target = await receiver(empty)
    const dead = [2, 3, 4, 5].map(last => `127.0.0.${last}`)
    const send = await senderOver({ 'hooks.test': [...dead, '127.0.0.1'] })
    expect(await send(`https://hooks.test:${target.port}/`)).toMatchObject({ reason: 'connection' })
    expect(target.connections).toBe(0)
  })

  it('ignores the proxy variables of the environment', async () => {
    const target = await receiver(empty)
    const send = await senderOver(loopback('hooks.test'))
    const proxies = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'HTTP_PROXY']
    for (const name of proxies) vi.stubEnv(name, 'http://127.0.0.1:1')
    vi.stubEnv('NODE_USE_ENV_PROXY', '1')
    try {
      expect(await send(`https://hooks.test:${target.port}/`)).toEqual({ kind: 'answered', status: 200 })
    } finally {
      vi.unstubAllEnvs()
    }
  })

  it('ends when its signal aborts, before or during the request', async () => {
    const target = await receiver(() => {})
    const send = await senderOver(loopback('hooks.test'))
    const ending = new AbortController()
    const outcome = send(`https://hooks.test:${target.port}/`, ending.signal)
    await expect.poll(() => target.connections).toBe(1)
    ending.abort()
    expect(await outcome).toMatchObject({ kind: 'failed', reason: 'aborted' })
    expect(await send(`https://hooks.test:${target.port}/`, ending.signal)).toMatchObject({
      reason: 'aborted',
    })
    expect(target.connections).toBe(1)
    await expect.poll(() => target.open).toBe(0)
  })
})

describe('a receiver', () => {
  async function raw(onConnection: (socket: Socket) => void): Promise<{ server: Server; port: number }> {
    const server = createServer(socket => onConnection(socket.on('error', () => {}).resume()))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    open.push({ close: () => new Promise(resolve => server.close(resolve)) })
    return { server, port: (server.address() as AddressInfo).port }
  }

  it('is disconnected at the timeout if it accepts the connection and stays silent', async () => {
    const { port, server } = await raw(() => {})
    const send = await senderOver(loopback('hooks.test'), { timeoutMs: 200 })
    expect(await send(`https://hooks.test:${port}/`)).toMatchObject({ reason: 'timeout' })
    await expect
      .poll(() => new Promise(resolve => server.getConnections((_, count) => resolve(count))))
      .toBe(0)
  })

  it.each<[string, (socket: Socket) => void]>([
    ['hangs up', socket => socket.end()],
    ['does not speak TLS', socket => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')],
  ])('causes a TLS failure if it %s', async (_, onConnection) => {
    const { port } = await raw(onConnection)
    const send = await senderOver(loopback('hooks.test'))
    expect(await send(`https://hooks.test:${port}/`)).toMatchObject({ kind: 'failed', reason: 'tls' })
  })

  it('causes a connection failure if it does not listen', async () => {
    const { port, server } = await raw(() => {})
    await new Promise(resolve => server.close(resolve))
    const send = await senderOver(loopback('hooks.test'))
    const outcome = await send(`https://hooks.test:${port}/`)
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'connection', message: /ECONNREFUSED/ })
  })

  it.each<[string, string, object]>([
    ['garbage', 'garbage\r\n\r\n', { kind: 'failed', reason: 'answer' }],
    [
      'a head of 17 KiB',
      `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(17_000)}\r\n\r\n`,
      { kind: 'failed', reason: 'answer' },
    ],
    ['nothing', '', { kind: 'failed', reason: 'connection' }],
    ['half a head', 'HTTP/1.1 200 OK\r\nx: ', { kind: 'failed', reason: 'connection' }],
    ['half a body', 'HTTP/1.1 204 OK\r\n\r\n', { kind: 'answered', status: 204 }],
    [
      'a body shorter than its length',
      'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc',
      { kind: 'answered', status: 200 },
    ],
    ['a body without a length', 'HTTP/1.1 500 OK\r\n\r\nabc', { kind: 'answered', status: 500 }],
    [
      'a switch of protocols',
      'HTTP/1.1 101 x\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      { kind: 'failed' },
    ],
    [
      'two responses',
      'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 x\r\n\r\n',
      { kind: 'answered', status: 200 },
    ],
    ['an invalid redirect', 'HTTP/1.1 301 x\r\nlocation: //\r\n\r\n', { kind: 'answered', status: 301 }],
  ])('causes the expected outcome if it sends %s', async (_, answer, expected) => {
    const target = await receiver((request, response) => {
      request.resume().on('end', () => response.socket?.end(answer))
    })
    const send = await senderOver(loopback('hooks.test'))
    expect(await send(`https://hooks.test:${target.port}/`)).toMatchObject(expected)
    await expect.poll(() => target.open).toBe(0)
  })

  it('causes the failure "unresolved" or "timeout", whichever comes first, if its name server is silent', async () => {
    const names = { 'hooks.test': 'silent' as const }
    expect(await (await senderOver(names, { timeoutMs: 100 }))('https://hooks.test/')).toMatchObject({
      reason: 'timeout',
    })
    expect(await (await senderOver(names))('https://hooks.test/')).toMatchObject({ reason: 'unresolved' })
  })
})
