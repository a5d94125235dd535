// A server that merges trailers into the headers (RFC 9110 §6.5.1) would accept a forged identity from a trailer.
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { expectRefusal } from './invariants.ts'
import { ask, requestBytes } from './raw-client.ts'
import { spellingsOf } from './spellings.ts'
import { stage } from './stage.ts'

describe('the trailers of a request', () => {
  const at = stage(embeddedSetup, {
    more: '  - { name: optional, path: /optional/*, upstream: app, auth: optional }\n',
  })
  const send = (target: string, trailers: string[], lines: string[] = []) =>
    ask(
      at.gateway.url,
      requestBytes(
        'POST',
        target,
        [...lines, 'Transfer-Encoding: chunked'],
        `5\r\nfive!\r\n0\r\n${trailers.map(line => `${line}\r\n`).join('')}\r\n`,
      ),
    )
  const forged = [
    ...spellingsOf('x', 'user', 'id').map(name => `${name}: 999999`),
    ...spellingsOf('x', 'user', 'plan').map(name => `${name}: pro`),
    ...spellingsOf('x', 'user', 'key', 'id').map(name => `${name}: k1`),
    ...spellingsOf('x', 'user', 'scopes').map(name => `${name}: data:read`),
    ...spellingsOf('x', 'peage', 'assertion').map(name => `${name}: a.b.c`),
  ]

  it.each([
    ['/public/x', false, 'public for nobody'],
    ['/optional/x', false, 'public for nobody'],
    ['/optional/x', true, 'public for'],
    [`${guarded}/x`, true, 'secret for'],
  ])(
    'never bring a forged identity to the upstream at %s (with a credential: %s)',
    async (target, authorized, said) => {
      const credential = authorized ? [`Authorization: Bearer ${at.user.access}`] : []
      for (let i = 0; i < forged.length; i += 40) {
        const answer = await send(target, forged.slice(i, i + 40), [
          ...credential,
          'Trailer: X-User-Id',
          'TE: trailers',
        ])
        expect([answer?.status, answer?.body.toString().startsWith(said)]).toEqual([200, true])
      }
      for (const seen of at.upstream.seen) {
        expect([seen.body.toString(), seen.trailers]).toEqual(['five!', []])
        expect(seen.fields.filter(([name]) => /^(?:te|trailer)$/i.test(name))).toEqual([])
      }
      await at.holds([])
    },
  )

  it.each([
    'Content-Length: 100',
    'Transfer-Encoding: chunked',
    'Host: evil.example',
    'X-Forwarded-For: 6.6.6.6',
  ])('never change the body, the Host or the client address: %s', async line => {
    const answer = await send('/public/x', [line])
    await at.holds(answer === undefined ? [] : [answer])
    expect(at.upstream.seen.flatMap(({ trailers }) => trailers)).toEqual([])
    const values = at.upstream.seen.flatMap(({ fields }) => fields.map(([, value]) => value))
    expect(values.filter(value => /evil|6\.6\.6\.6|^100$/.test(value))).toEqual([])
  })

  it('never authenticate the request', async () => {
    expectRefusal(await send(`${guarded}/x`, [`Authorization: Bearer ${at.user.access}`]), 'token_invalid')
    expect(at.upstream.seen).toEqual([])
  })
})
