// A client cannot send identity headers to the upstream, whatever their spelling.
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalName } from '../../src/config/formats/header-names.ts'
import { parseRequestHead } from '../../src/gate/parsing/request-head.ts'
import { parseRequestTarget } from '../../src/gate/parsing/request-target.ts'
import { createTrustedProxies } from '../../src/http/client-address.ts'
import type { Identity } from '../../src/identity/identity.ts'
import { headerKind } from '../../src/proxy/request-header-kind.ts'
import { buildUpstreamHeaders } from '../../src/proxy/upstream-headers.ts'
import { routeWith } from '../gate/a-route.ts'
import { runs } from '../support/property-runs.ts'

const often = { seed: 20_261_121, numRuns: runs(500) }

const identityNames = [
  ['x', 'user', 'id'],
  ['x', 'user', 'plan'],
  ['x', 'user', 'email'],
  ['x', 'user', 'key', 'id'],
  ['x', 'user', 'scopes'],
  ['x', 'peage', 'assertion'],
]

/** The characters that a header name may contain in addition to letters and digits (RFC 9110 §5.6.2). */
const separator = fc.string({ unit: fc.constantFrom(..."!#$%&'*+-.^_`|~"), minLength: 1, maxLength: 3 })
const edge = fc.oneof({ weight: 3, arbitrary: fc.constant('') }, separator)
const anyCase = (word: string) =>
  fc
    .array(fc.boolean(), { minLength: word.length, maxLength: word.length })
    .map(upper => [...word].map((letter, i) => (upper[i] ? letter.toUpperCase() : letter)).join(''))

/** Spellings that an upstream may normalize to the name of an identity header. */
const forgedName = fc.constantFrom(...identityNames).chain(words =>
  fc
    .tuple(edge, fc.tuple(...words.map(word => fc.tuple(anyCase(word), separator))), edge)
    .map(([before, parts, after]) => {
      const name = parts.map(([word, after], i) => (i < parts.length - 1 ? word + after : word)).join('')
      return before + name + after
    }),
)

const tokenName = fc.string({
  unit: fc.constantFrom(..."abcxyzABCXYZ0123456789!#$%&'*+-.^_`|~"),
  minLength: 1,
  maxLength: 20,
})
const knownName = fc.constantFrom(
  'Accept',
  'Connection',
  'connection',
  'CONNECTION',
  'X-Forwarded-For',
  'x_forwarded_for',
  'Via',
  'Host',
  'Keep-Alive',
  'Proxy-Authorization',
  'Transfer_Encoding',
  'Content_Length',
  'X-Request-Id',
  'X-API-Key',
  'Authorization',
  'Cookie',
)
const fieldValue = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'abc123, ;="'), maxLength: 20 }),
  fc.constantFrom('x-user-id', 'X-User-Plan, keep-alive', 'close', 'x_user_id', 'upgrade, x-user-id', ','),
)
const fields = fc.array(fc.tuple(fc.oneof(forgedName, knownName, tokenName), fieldValue), { maxLength: 12 })

/** Returns a request like the requests that node:http passes to its listeners. */
function requestOf(lines: readonly (readonly [string, string])[]): IncomingMessage {
  const request = new IncomingMessage(new Socket())
  Object.assign(request, {
    method: 'GET',
    url: '/x',
    httpVersion: '1.1',
    httpVersionMajor: 1,
    httpVersionMinor: 1,
  })
  request.rawHeaders.push('Host', 'gw.test', ...lines.flat())
  const connection = lines.filter(([name]) => name.toLowerCase() === 'connection').map(([, value]) => value)
  if (connection.length > 0) request.headers.connection = connection.join(', ')
  return request
}

const routeOf = (auth: 'required' | 'none', forward_email: boolean) => routeWith({ auth, forward_email })

function sent(
  lines: readonly (readonly [string, string])[],
  identity: Identity,
  proxies: readonly string[],
  forwardEmail = false,
): [string, string][] {
  const request = requestOf(lines)
  const route = routeOf(identity.kind === 'user' ? 'required' : 'none', forwardEmail)
  const target = parseRequestTarget('/x')
  if (target === undefined) throw new Error('no target')
  const head = parseRequestHead(request, createTrustedProxies(proxies))
  const received = { request, head, requestId: head.clientRequestId ?? 'made', trace: undefined }
  const flat = buildUpstreamHeaders(received, { route, target }, identity)
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] as string, flat[2 * i + 1] as string])
}

const canonicalIdentity = new Set(identityNames.map(words => words.join('-')))
const claims = (all: [string, string][]) => all.filter(([name]) => canonicalIdentity.has(canonicalName(name)))

const user = {
  kind: 'user',
  user: { id: 42, email: 'ada@example.com', plan: 'pro', is_active: 1 },
} as Identity

describe('the canonical name of a header', () => {
  it('is the same for every spelling of an identity header', () => {
    fc.assert(
      fc.property(forgedName, name => {
        expect(canonicalIdentity).toContain(canonicalName(name))
        expect(headerKind(name)).toBe('identity')
      }),
      often,
    )
  })

  it('does not depend on letter case, and stays the same if it is canonicalized again', () => {
    fc.assert(
      fc.property(fc.oneof(tokenName, fc.string()), name => {
        expect(canonicalName(canonicalName(name))).toBe(canonicalName(name))
        expect(canonicalName(name.toUpperCase())).toBe(canonicalName(name.toLowerCase()))
      }),
      often,
    )
  })

  it('keeps its kind, even after thousands of other headers were seen', () => {
    expect(headerKind('X_User-Id')).toBe('identity')
    for (let i = 0; i < 5_000; i++) expect(headerKind(`X-Invented-${i}`)).toBe('pass')
    expect([headerKind('X_User-Id'), headerKind('x-user-idx'), headerKind('user-id')]).toEqual([
      'identity',
      'pass',
      'pass',
    ])
  })

  it.each([
    ['Connection', 'connection'],
    ['con_nection', 'pass'],
    ['Keep_Alive', 'drop'],
    ['Transfer-Encoding', 'drop'],
    ['transfer_encoding', 'drop'],
    ['Content.Length', 'drop'],
    ['content-length', 'content-length'],
    ['X_API_Key', 'drop'],
    ['x-api-key', 'x-api-key'],
    ['AUTHORIZATION', 'authorization'],
    ['Authorization-', 'drop'],
    ['HTTP2-Settings', 'drop'],
    ['Proxy-Anything', 'drop'],
    ['Proxy', 'drop'],
    ['X-Forwarded-Anything', 'forwarded'],
    ['X_Forwarded_Anything', 'drop'],
    ['Forwarded', 'forwarded'],
    ['Content-Type', 'pass'],
    ['X-Peage-Error', 'drop'],
    ['X-HTTP-Method-Override', 'drop'],
    ['Sec-WebSocket-Key', 'pass'],
    ['__proto__', 'pass'],
    ['constructor', 'pass'],
    ['Client-IP', 'forwarded'],
    ['client_ip', 'drop'],
    ['X-Client-Id', 'pass'],
    ['X-Client-Version', 'pass'],
    ['Client-Certainty', 'pass'],
    ['X-Forward-To', 'pass'],
    ['X-User-Address', 'pass'],
    ['X-Zip', 'pass'],
    ['X-Recipient-IP', 'pass'],
    ['Source-Ship', 'pass'],
    ['Sec-CH-UA', 'pass'],
  ])('gives the header %s the kind "%s"', (name, kind) => {
    expect(headerKind(name)).toBe(kind)
  })
})

describe('the headers to the upstream', () => {
  it('contain no identity if an anonymous client forges identity headers, even behind a trusted proxy', () => {
    fc.assert(
      fc.property(fields, fc.constantFrom([], ['0.0.0.0/0', '::/0']), (lines, proxies) => {
        expect(claims(sent(lines, { kind: 'anonymous' }, proxies))).toEqual([])
      }),
      often,
    )
  })

  it('contain the identity of a user only once, with the values from the gateway, directly after Host', () => {
    fc.assert(
      fc.property(fields, fc.boolean(), (lines, forwardEmail) => {
        const all = sent(lines, user, [], forwardEmail)
        const expected: [string, string][] = [
          ['x-user-id', '42'],
          ['x-user-plan', 'pro'],
        ]
        if (forwardEmail) expected.push(['x-user-email', 'ada@example.com'])
        expect(claims(all)).toEqual(expected)
        expect(all.slice(0, 1 + expected.length)).toEqual([['host', ''], ...expected])
      }),
      often,
    )
  })

  it('contain the ID and the scopes of a named API key only once, and no scopes if the key has no scope limit', () => {
    const scopesOf = fc.constantFrom(null, ['data:read'], ['data:read', 'data:write'])
    fc.assert(
      fc.property(fields, scopesOf, fc.boolean(), (lines, scopes, isApiToken) => {
        const apiKey = { id: 'k1', userId: 42, isApiToken, scopes, expiresAtMs: null }
        const expected: [string, string][] = [
          ['x-user-id', '42'],
          ['x-user-plan', 'pro'],
        ]
        if (!isApiToken) expected.push(['x-user-key-id', 'k1'])
        if (!isApiToken && scopes !== null) expected.push(['x-user-scopes', scopes.join(' ')])
        expect(claims(sent(lines, { ...user, apiKey } as Identity, []))).toEqual(expected)
      }),
      often,
    )
  })

  it('contain no hop-by-hop header and no credential, and exactly one Host', () => {
    fc.assert(
      fc.property(fields, lines => {
        const names = sent(lines, user, []).map(([name]) => canonicalName(name))
        for (const dropped of [
          'connection',
          'keep-alive',
          'transfer-encoding',
          'authorization',
          'x-api-key',
          'content-length',
        ]) {
          expect(names).not.toContain(dropped)
        }
        for (const one of ['host', 'via', 'x-request-id', 'x-forwarded-for', 'x-forwarded-proto']) {
          expect(names.filter(name => name === one)).toEqual([one])
        }
      }),
      often,
    )
  })
})
