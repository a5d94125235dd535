// h2c smuggling: a proxy that passes `Upgrade: h2c` on becomes a blind tunnel, past every guard.
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { alone } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { expectRefusal } from './invariants.ts'
import { RawConnection, requestBytes, value } from './raw-client.ts'
import { stage } from './stage.ts'

const settings = 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA'
const upgrades = [
  ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', settings],
  ['Connection: Upgrade', 'Upgrade: h2c'],
  ['Connection: HTTP2-Settings, upgrade', 'Upgrade: H2C', settings],
  ['Connection: close, Upgrade', 'Upgrade: h2c'],
  ['Upgrade: h2c', settings],
  ['Connection: upgrade', 'Upgrade: h2', 'Upgrade: h2c'],
  ['Connection: upgrade', 'Upgrade: TLS/1.0, HTTP/1.1'],
]

describe('upgrades to HTTP/2', () => {
  const at = stage(alone, { catchAll: true })

  it.each(upgrades)('%s, %s: is no tunnel, and the upstream is not asked for one', async (...lines) => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', '/public/x', lines))
    const answer = await connection.answer()
    expect(answer?.status).toBeGreaterThanOrEqual(200)
    await at.holds(answer === undefined ? [] : [answer])
    const passed = at.upstream.seen.flatMap(({ fields }) =>
      fields.filter(([name]) => /^(?:upgrade|http2-settings)$/i.test(name)),
    )
    expect(passed).toEqual([])

    // What follows is HTTP/1.1 and guarded, or the connection is over.
    connection.write(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${requestBytes('GET', guarded)}`)
    const after = await connection.answer('GET', 1_000)
    if (after !== undefined) expectRefusal(after, 'request_invalid')
    expect(at.upstream.seen.filter(({ url }) => url !== '/public/x')).toEqual([])
    connection.close()
  })

  it('a guarded route asks for a credential first', async () => {
    for (const lines of upgrades) {
      const connection = new RawConnection(at.gateway.url)
      connection.write(requestBytes('GET', guarded, lines))
      expectRefusal(await connection.answer(), 'token_invalid')
      connection.close()
    }
    expect(at.upstream.seen).toEqual([])
  })
})

it('an upstream that switches protocols unasked gives the client no tunnel', async () => {
  const upstream = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'),
    )
  })
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const { port } = upstream.address() as { port: number }
  const gateway = await startGateway(
    `upstreams: { app: { targets: ['http://127.0.0.1:${port}'] } }
routes: [{ path: /*, upstream: app, auth: none }]
`,
  )
  try {
    const connection = new RawConnection(gateway.url)
    connection.write(requestBytes('GET', '/x', ['Connection: Upgrade', 'Upgrade: h2c']))
    const answer = await connection.answer()
    expectRefusal(answer, 'upstream_unreachable')
    expect(answer && value(answer, 'upgrade')).toBeUndefined()
    connection.close()
  } finally {
    await gateway.stop()
    upstream.close()
  }
})
