// NUL ends a string in C, but not in other languages. Two servers can therefore read different values from one
// request.
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { expectRefusal } from './invariants.ts'
import { ask, RawConnection, requestBytes } from './raw-client.ts'
import { stage } from './stage.ts'

describe('a NUL byte', () => {
  const at = stage(embeddedSetup, { catchAll: true })

  it('is refused at any position in a request head, and the connection is closed', async () => {
    const text = 'GET /public/x HTTP/1.1\r\nHost: gw.test\r\nX-Foo: bar\r\n\r\n'
    const refused = Array.from({ length: text.length }, async (_, i) => {
      const connection = new RawConnection(at.gateway.url)
      connection.write(`${text.slice(0, i)}\0${text.slice(i)}`)
      expectRefusal(await connection.answer(), 'request_invalid')
      const isOver = await connection.endsWithin(2_000)
      connection.close()
      return isOver
    })
    expect(await Promise.all(refused)).toEqual(refused.map(() => true))
    expect(at.upstream.seen).toEqual([])
  })

  it('is forwarded unchanged if it is percent-encoded in a query', async () => {
    const answer = await ask(at.gateway.url, requestBytes('GET', '/public/x?a=%00&b=%2500'))
    expect(answer?.status).toBe(200)
    expect(at.upstream.seen.map(({ url }) => url)).toEqual(['/public/x?a=%00&b=%2500'])
    await at.holds([])
  })

  it('is forwarded in a body', async () => {
    const answer = await ask(
      at.gateway.url,
      requestBytes('POST', '/public/x', ['Content-Length: 5'], 'a\0b\0c'),
    )
    expect(answer?.status).toBe(200)
    expect(at.upstream.seen.map(({ body }) => body.toString('latin1'))).toEqual(['a\0b\0c'])
  })
})
