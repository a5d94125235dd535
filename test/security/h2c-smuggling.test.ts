// h2c smuggling: if a proxy forwards `Upgrade: h2c`, the client's connection becomes a tunnel to the upstream. Later
// requests in this tunnel bypass every guard.
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { expectRefusal } from './invariants.ts'
import { RawConnection, requestBytes } from './raw-client.ts'
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

describe('an upgrade to HTTP/2', () => {
  const at = stage(embeddedSetup, { catchAll: true })

  it.each(upgrades)('opens no tunnel and is not forwarded with %s, %s', async (...lines) => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', '/public/x', lines))
    const answer = await connection.answer()
    expect(answer?.status).toBeGreaterThanOrEqual(200)
    await at.holds(answer === undefined ? [] : [answer])
    const passed = at.upstream.seen.flatMap(({ fields }) =>
      fields.filter(([name]) => /^(?:upgrade|http2-settings)$/i.test(name)),
    )
    expect(passed).toEqual([])

    // These bytes begin an HTTP/2 connection. The gateway either refuses them or has already ended the connection.
    connection.write(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${requestBytes('GET', guarded)}`)
    const after = await connection.answer('GET', 1_000)
    if (after !== undefined) expectRefusal(after, 'request_invalid')
    expect(at.upstream.seen.filter(({ url }) => url !== '/public/x')).toEqual([])
    connection.close()
  })

  it('needs a credential on a guarded route', async () => {
    for (const lines of upgrades) {
      const connection = new RawConnection(at.gateway.url)
      connection.write(requestBytes('GET', guarded, lines))
      expectRefusal(await connection.answer(), 'token_invalid')
      connection.close()
    }
    expect(at.upstream.seen).toEqual([])
  })
})
