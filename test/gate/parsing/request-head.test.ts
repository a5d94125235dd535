// Tests how the headers of a request are parsed. Framing that an upstream may parse differently is refused.
import { describe, expect, it } from 'vitest'
import { parseRequestHead } from '../../../src/gate/parsing/request-head.ts'
import { createTrustedProxies } from '../../../src/http/client-address.ts'
import { Refusal } from '../../../src/refusals/refusal.ts'
import { aRequest } from '../a-request.ts'

type Field = [string, string]

const host: Field = ['Host', 'gw.test']
const proxies = createTrustedProxies(['10.0.0.0/8'])

const parse = (fields: Field[], received: Parameters<typeof aRequest>[1] = {}) =>
  parseRequestHead(aRequest(fields, received), proxies)

/** Returns `taken` if the request is accepted, otherwise the code of the refusal and whether the connection closes. */
function verdict(fields: Field[], received: Parameters<typeof aRequest>[1] = {}): string {
  const { target } = parse(fields, received)
  if (!(target instanceof Refusal)) return 'taken'
  const closes = target.response('fr').fields.join(' ').includes('connection close')
  return `${target.code}${closes ? ', closes' : ''}`
}

describe('the head of a request', () => {
  it('contains the known headers, whatever their letter case, and no other header with a name of the same length', () => {
    for (const spelt of [(name: string) => name, (name: string) => name.toUpperCase()]) {
      const named = (name: string, value: string): Field => [spelt(name), value]
      const head = parse([
        named('host', 'gw.test'),
        named('authorization', 'Bearer a'),
        named('x-api-key', 'peage_b'),
        named('x-request-id', 'id-1'),
        named('content-length', '12'),
      ])
      expect(head).toMatchObject({
        host: 'gw.test',
        authorization: 'Bearer a',
        apiKey: 'peage_b',
        clientRequestId: 'id-1',
        contentLength: 12,
        hasBody: true,
        hasAmbiguousCredentials: false,
        expectsContinue: false,
      })
    }
    // Each of these names differs from a known name in only one letter.
    const others = ['hose', 'x-api-kez', 'x-request-ie', 'authorizatiom', 'content-lengti', 'x-forwarded-fos']
    const head = parse([host, ...[...others, 'transfer-encodimg'].map((name): Field => [name, 'x'])])
    expect(head).toMatchObject({ host: 'gw.test', hasBody: false, hasAmbiguousCredentials: false })
    expect([head.authorization, head.apiKey, head.clientRequestId, head.contentLength]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    expect(verdict([host, ['transfer-encodimg', 'x']])).toBe('taken')
  })

  it('marks two credentials of the same kind as ambiguous, even if they are equal', () => {
    for (const name of ['Authorization', 'X-API-Key']) {
      const twice = parse([host, [name, 'same'], [name.toLowerCase(), 'same']])
      expect(twice.hasAmbiguousCredentials).toBe(true)
    }
    expect(parse([host, ['Authorization', 'a'], ['X-API-Key', 'b']]).hasAmbiguousCredentials).toBe(false)
  })

  it('announces a body if it contains Transfer-Encoding, and no body if Content-Length is 0', () => {
    expect(parse([host, ['Content-Length', '0']])).toMatchObject({ hasBody: false, contentLength: 0 })
    expect(parse([host, ['Transfer-Encoding', 'chunked']])).toMatchObject({ hasBody: true })
    expect(parse([host, ['Transfer-Encoding', 'chunked']]).contentLength).toBeUndefined()
  })

  it('asks for 100 Continue with the header Expect only in HTTP/1.1', () => {
    const fields: Field[] = [host, ['Expect', '100-Continue']]
    expect(parse(fields).expectsContinue).toBe(true)
    expect(parse(fields, { httpVersion: '1.0' }).expectsContinue).toBe(false)
  })

  it('contains the request ID of the client only if this ID is safe in logs and headers', () => {
    const idOf = (id: string) => parse([host, ['X-Request-Id', id]]).clientRequestId
    const most = 'a'.repeat(128)
    expect([idOf('A-z.0_9:~+/='), idOf(most)]).toEqual(['A-z.0_9:~+/=', most])
    expect(['', `${most}a`, 'a b', 'a"b', 'é', ' a', 'a\n'].map(idOf)).toEqual(Array(7).fill(undefined))
  })
})

describe('the client address', () => {
  const forwarded: Field[] = [host, ['X-Forwarded-For', '203.0.113.9'], ['x-forwarded-for', '10.0.0.7']]

  it('if the peer is trusted, is the last untrusted address in all X-Forwarded-For headers together', () => {
    expect(parse(forwarded, { peer: '10.1.1.1' })).toMatchObject({
      client: '203.0.113.9',
      peerIsTrusted: true,
      untrustedForwarder: undefined,
    })
  })

  it('is the address of the peer if the peer is not trusted, and a private peer that sends X-Forwarded-For is reported', () => {
    expect(parse(forwarded, { peer: '::ffff:192.168.0.4' })).toMatchObject({
      client: '192.168.0.4',
      peerIsTrusted: false,
      untrustedForwarder: '192.168.0.4',
    })
    expect(parse(forwarded, { peer: '8.8.8.8' }).untrustedForwarder).toBeUndefined()
    for (const fields of [[host], [host, ['X-Forwarded-For', '']]] as Field[][]) {
      expect(parse(fields, { peer: '192.168.0.4' }).untrustedForwarder).toBeUndefined()
    }
  })

  it('is not read from another header with a name of the same length', () => {
    const fields: Field[] = [...forwarded, ['Accept-Language', '198.51.100.66']]
    expect(parse(fields, { peer: '10.1.1.1' }).client).toBe('203.0.113.9')
  })
})

describe('a request', () => {
  const malformed = 'request_invalid, closes'

  it.each<[string, Field[]]>([
    ['two Hosts', [host, host]],
    ['no Host', []],
    ['an invalid Host', [['Host', 'a b']]],
    ['two equal lengths', [host, ['Content-Length', '1'], ['content-length', '1']]],
    ['two transfer codings', [host, ['Transfer-Encoding', 'chunked'], ['Transfer-Encoding', 'chunked']]],
    ['a length and a transfer coding', [host, ['Content-Length', '1'], ['Transfer-Encoding', 'chunked']]],
    ['a transfer coding in addition to chunked', [host, ['Transfer-Encoding', 'gzip, chunked']]],
    ['an empty length', [host, ['Content-Length', '']]],
    ['a signed length', [host, ['Content-Length', '+1']]],
    ['a length with a unit', [host, ['Content-Length', '1k']]],
    ['a length with an exponent', [host, ['Content-Length', '1e3']]],
    ['a hexadecimal length', [host, ['Content-Length', '0x10']]],
    ['a length above the largest exact number', [host, ['Content-Length', '9007199254740992']]],
    ['an expectation other than 100-continue', [host, ['Expect', '200-ok']]],
  ])('with %s is refused, and the gateway closes the connection', (_, fields) => {
    expect(verdict(fields)).toBe(malformed)
  })

  it.each<[string, Field[]]>([
    ['one Host', [host]],
    ['an empty Host', [['Host', '']]],
    ['the largest exact length', [host, ['Content-Length', '9007199254740991']]],
    ['chunked in any letter case', [host, ['Transfer-Encoding', 'Chunked']]],
    ['100-continue in any letter case', [host, ['Expect', '100-Continue']]],
  ])('with %s is accepted', (_, fields) => {
    expect(verdict(fields)).toBe('taken')
  })

  it('in HTTP/1.0 needs no Host and must not use a transfer coding', () => {
    expect(verdict([], { httpVersion: '1.0' })).toBe('taken')
    expect(parse([], { httpVersion: '1.0' }).host).toBe('')
    expect(verdict([host, ['Transfer-Encoding', 'chunked']], { httpVersion: '1.0' })).toBe(malformed)
  })

  it('is refused if it uses a major version of HTTP other than 1', () => {
    expect(verdict([host], { httpVersion: '2.0' })).toBe(malformed)
  })

  it('is refused with headers_too_large if all headers together are one byte larger than 16 KiB', () => {
    // Each header also has 4 bytes for the colon, the space and the two characters of the line end.
    const rest = 16_384 - ('Host'.length + 'gw.test'.length + 4) - ('X'.length + 4)
    expect(verdict([host, ['X', 'a'.repeat(rest)]])).toBe('taken')
    expect(verdict([host, ['X', 'a'.repeat(rest + 1)]])).toBe('headers_too_large, closes')
  })
})

describe('the request target', () => {
  it('is refused if it is not a valid path, but the connection stays open', () => {
    expect(verdict([host], { path: '/a/%00' })).toBe('path_invalid')
  })

  it('in absolute form must contain a host that would be valid in a Host header', () => {
    expect(verdict([host], { path: 'http://gw.test/a' })).toBe('taken')
    expect(verdict([host], { path: 'http://a|b/a' })).toBe('request_invalid, closes')
  })
})
