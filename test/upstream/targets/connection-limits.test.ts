// Tests the time limits of a connection that several requests use one after another. undici uses one timer for all time
// limits of a connection.
import type { Socket } from 'node:net'
import { beforeEach, describe, expect, it } from 'vitest'
import { ask, requestBytes } from '../../security/raw-client.ts'
import { gatewayBefore } from '../../support/gateway-before.ts'
import { startScriptedUpstream } from '../scripted-upstream.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const half = ok.slice(0, -1)

describe('a reused connection', () => {
  const at = gatewayBefore(
    startScriptedUpstream,
    url => `upstreams:
  head: { targets: ['${url}'], connections: 1, timeouts: { response: 500ms, idle: 20s } }
  body: { targets: ['${url}'], connections: 1, timeouts: { response: 20s, idle: 500ms } }
routes:
  - { path: /head, upstream: head, auth: none }
  - { path: /body, upstream: body, auth: none }
`,
  )
  beforeEach(() => {
    at.upstream.script = socket => socket.write(ok)
    at.upstream.connections = 0
  })

  const get = (path: string) => ask(at.gateway.url, requestBytes('GET', path))

  /** Sends two requests that succeed, then a third request, to which the upstream responds with `script`. */
  async function getThird(path: string, script: (socket: Socket) => void) {
    for (let i = 0; i < 2; i += 1) expect((await get(path))?.body.toString()).toBe('ok')
    at.upstream.script = script
    const startedAt = performance.now()
    const answer = await get(path)
    expect(at.upstream.connections).toBe(1)
    return { answer, tookMs: performance.now() - startedAt }
  }

  it('waits for a response head until the time limit `response`, not `idle`', async () => {
    const { answer, tookMs } = await getThird('/head', () => {})
    expect(answer?.status).toBe(504)
    expect(tookMs).toBeLessThan(5_000)
  })

  it('waits for a stalled body until the time limit `idle`, not `response`', async () => {
    const { answer, tookMs } = await getThird('/body', socket => socket.write(half))
    expect(answer).toMatchObject({ status: 200, complete: false })
    expect(tookMs).toBeLessThan(5_000)
  })

  it('waits longer for a body than for a head if `idle` is longer than `response`', async () => {
    const { answer } = await getThird('/head', socket => {
      socket.write(half)
      setTimeout(() => socket.write('k'), 1_500)
    })
    expect(answer?.body.toString()).toBe('ok')
  })

  // undici closes a connection two seconds before the upstream's keep-alive time ends.
  it.each([3, 4])('is closed before its upstream’s keep-alive time of %i s ends', async seconds => {
    const ended = new Promise<number>(resolve => {
      at.upstream.script = socket => {
        const answeredAt = performance.now()
        socket.once('end', () => resolve((performance.now() - answeredAt) / 1000))
        socket.write(ok.replace('\r\n', `\r\nKeep-Alive: timeout=${seconds}\r\n`))
      }
    })
    expect((await get('/body'))?.status).toBe(200)
    const idleSeconds = await ended
    expect(idleSeconds).toBeGreaterThan(0.4)
    expect(idleSeconds).toBeLessThan(seconds - 1)
  })
})
