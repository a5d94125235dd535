// CVE-2021-33197, CVE-2022-31813: an attacker lists headers in `Connection`, so that the proxy removes headers that the
// proxy itself has added.
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { expectRefusal } from './invariants.ts'
import { ask, requestBytes } from './raw-client.ts'
import { stage } from './stage.ts'

describe('headers named in `Connection`', () => {
  const at = stage(embeddedSetup, {
    more: '  - { name: forwarding, path: /forwarding/*, upstream: app, forward_credentials: true }\n',
  })
  const ours = [
    ...['x-user-id', 'x-user-plan', 'host', 'via', 'x-request-id'],
    ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'],
  ]
  const sets = [
    ...ours.map(name => [name]),
    ...ours.map(name => [name.toUpperCase(), 'close']),
    ours,
    ['keep-alive', ...ours],
    ['upgrade', ...ours],
    ours.map(name => name.replaceAll('-', '_')),
  ]

  it.each(sets.map(names => [names.join(', ')]))(
    'are still sent to the upstream if the gateway itself sets them: "%s"',
    async names => {
      for (const lines of [[`Connection: ${names}`], names.split(', ').map(name => `Connection: ${name}`)]) {
        const answer = await ask(
          at.gateway.url,
          requestBytes('GET', `${guarded}/x`, [`Authorization: Bearer ${at.user.access}`, ...lines]),
        )
        expect(answer?.body.toString()).toBe(`secret for ${at.user.id}`)
      }
      for (const { fields } of at.upstream.seen) {
        const received = fields.map(([name]) => name.toLowerCase())
        for (const name of ours)
          expect([name, received.filter(other => other === name).length]).toEqual([name, 1])
      }
      await at.holds([])
    },
  )

  it('are removed if they forge an identity, and the request stays anonymous', async () => {
    for (const connection of [
      'x-user-id',
      'x-user-key-id, x-user-scopes',
      'close, X-User-Id',
      'keep-alive',
    ]) {
      const answer = await ask(
        at.gateway.url,
        requestBytes('GET', '/public/x', [
          'X-User-Id: 999999',
          'X_User_Plan: pro',
          'X-User-Key-Id: k1',
          'X-User-Scopes: data:read',
          `Connection: ${connection}`,
        ]),
      )
      expect(answer?.body.toString()).toBe('public for nobody')
    }
    await at.holds([])
  })

  it('still authenticate the request if they contain its credential', async () => {
    const bearer = `Authorization: Bearer ${at.user.access}`
    const answer = await ask(
      at.gateway.url,
      requestBytes('GET', `${guarded}/x`, [bearer, 'Connection: authorization']),
    )
    expect(answer?.body.toString()).toBe(`secret for ${at.user.id}`)
    const wrong = await ask(
      at.gateway.url,
      requestBytes('GET', `${guarded}/x`, ['Authorization: Bearer x', 'Connection: authorization']),
    )
    expectRefusal(wrong, 'token_invalid')
  })

  it.each(['/forwarding/x', '/public/x'])(
    'are not forwarded if they contain credentials or subprotocols, on the path %s',
    async path => {
      const token = path === '/public/x' ? 'of-the-upstream' : at.user.access
      const fields = [`Authorization: Bearer ${token}`, 'X-API-Key: theirs', 'Sec-WebSocket-Protocol: chat']
      for (const named of [
        [],
        ['Connection: authorization, X-API-KEY', 'Connection: sec-websocket-protocol'],
      ]) {
        const answer = await ask(at.gateway.url, requestBytes('GET', path, [...fields, ...named]))
        expect(answer?.status).toBe(200)
      }
      const credentials = /^(?:authorization|x-api-key|sec-websocket-protocol)$/i
      const received = at.upstream.seen.map(
        seen => seen.fields.filter(([name]) => credentials.test(name)).length,
      )
      expect(received).toEqual([3, 0])
      await at.holds([])
    },
  )

  it.each(['content-length', 'transfer-encoding'])(
    'still determine the length of the body (%s)',
    async name => {
      const isChunked = name === 'transfer-encoding'
      const answer = await ask(
        at.gateway.url,
        requestBytes(
          'POST',
          '/public/x',
          [`Connection: ${name}`, isChunked ? 'Transfer-Encoding: chunked' : 'Content-Length: 5'],
          isChunked ? '5\r\nfive!\r\n0\r\n\r\n' : 'five!',
        ),
      )
      expect(answer?.status).toBe(200)
      expect(at.upstream.seen.map(({ body }) => body.toString())).toEqual(['five!'])
      await at.holds([])
    },
  )
})
