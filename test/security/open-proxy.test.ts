// The gateway sends requests only to its declared upstreams, even if a request names another server.
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { expectRefusal } from './invariants.ts'
import { ask, RawConnection, requestBytes, value } from './raw-client.ts'
import { stage } from './stage.ts'

describe('the gateway as a proxy', () => {
  const at = stage(embeddedSetup, {
    catchAll: true,
  })
  const asked = (target: string, ...lines: string[]) =>
    ask(at.gateway.url, requestBytes('GET', target, lines))

  it('refuses CONNECT in French and closes the connection', async () => {
    let connections = 0
    const elsewhere = createServer(socket => {
      connections += 1
      socket.destroy()
    })
    await new Promise<void>(resolve => elsewhere.listen(0, '127.0.0.1', resolve))
    const { port } = elsewhere.address() as { port: number }
    for (const authority of [`127.0.0.1:${port}`, `localhost:${port}`, '/public/x', 'gw.test:443']) {
      const connection = new RawConnection(at.gateway.url)
      connection.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\nGET / HTTP/1.1\r\n\r\n`)
      const answer = await connection.answer()
      expectRefusal(answer, 'request_invalid')
      expect(answer && value(answer, 'connection')).toBe('close')
      expect(await connection.endsWithin(2_000)).toBe(true)
      connection.close()
    }
    expect([connections, at.upstream.seen]).toEqual([0, []])
    elsewhere.close()
  })

  it('routes a target such as http://host/path only by its path, and sends the host of the upstream in Host', async () => {
    const answer = await asked('http://gw.test/public/x?y=1')
    expect(answer?.status).toBe(200)
    const [seen] = at.upstream.seen
    expect(seen?.url).toBe('/public/x?y=1')
    expect(seen?.fields.filter(([name]) => name === 'host')).toEqual([
      ['host', new URL(at.upstream.url).host],
    ])
    expect(seen?.fields.filter(([name]) => name === 'x-forwarded-host')).toEqual([
      ['x-forwarded-host', 'gw.test'],
    ])
  })

  it.each(['evil.example', '127.0.0.1:6379', 'localhost', '169.254.169.254', '[::1]:80', 'GW.TEST.'])(
    'sends a request with Host: %s to the declared upstream',
    async host => {
      expect((await asked('/public/x', `Host: ${host}`))?.status).toBe(200)
      expect(at.upstream.seen.map(seen => seen.fields.find(([name]) => name === 'host'))).toEqual([
        ['host', new URL(at.upstream.url).host],
      ])
    },
  )
})
