// A route can set and remove headers, and can send a signed identity assertion to its upstream.
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ask, requestBytes, value } from '../security/raw-client.ts'
import { call, newUser, type TestUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { startUpstream } from '../support/upstream.ts'

let user: TestUser

const at = gatewayBefore(
  startUpstream,
  url => `upstreams:
  app: { targets: ['${url}'] }
routes:
  - name: changed
    path: /changed/*
    upstream: app
    auth: none
    headers:
      request: { set: { X-Internal: set by ops, Host: 'app.internal:81', Authorization: Basic eDp5 }, remove: [X-Secret, cookie, X-Forwarded-Host] }
      response: { set: { Strict-Transport-Security: max-age=1, x-frame-options: DENY }, remove: [Server, Set-Cookie] }
  - { name: plain, path: /plain/*, upstream: app, auth: none }
  - { name: shut, path: /shut, upstream: app, headers: { response: { set: { X-Set: '1' } } } }
  - { name: asserted, path: /asserted/*, upstream: app, auth: optional, identity_assertion: true, headers: { request: { set: { X-Internal: '1' } } } }
`,
)
beforeAll(async () => {
  user = await newUser(at.gateway, 'premium')
})
beforeEach(() => {
  at.upstream.received.length = 0
  at.upstream.answer = undefined
})

/** Sends header lines and returns the headers that the upstream received, in their order and case. */
async function received(path: string, lines: string[] = []): Promise<[string, string][]> {
  const answer = await ask(at.gateway.url, requestBytes('GET', path, lines), 'GET')
  expect(answer?.status).toBe(200)
  const raw = at.upstream.received.at(-1)?.rawHeaders ?? []
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] as string, raw[2 * i + 1] as string])
}
const of = (fields: [string, string][], name: RegExp) => fields.filter(([other]) => name.test(other))

describe('a request', () => {
  it('has exactly one copy of each header that its route sets; a client’s header with this name, even in another spelling, is removed', async () => {
    const fields = await received('/changed/x', [
      'X-Internal: forged',
      'x_internal: forged',
      'X.Internal: forged',
      'X--INTERNAL: forged',
      'X-Internals: kept',
      'Authorization: Bearer theirs',
    ])
    expect(of(fields, /internal/i)).toEqual([
      ['X-Internal', 'set by ops'],
      ['X-Internals', 'kept'],
    ])
    expect(of(fields, /^authorization$/i)).toEqual([['Authorization', 'Basic eDp5']])
  })

  it('has no header that its route removes, in any spelling of the name', async () => {
    const fields = await received('/changed/x', ['X-Secret: 1', 'x_secret: 1', 'COOKIE: a=b', 'X-Kept: 1'])
    expect(of(fields, /secret|cookie|x-forwarded-host/i)).toEqual([])
    expect(of(fields, /x-kept|x-forwarded-proto/i)).toHaveLength(2)
  })

  it('has exactly one Host header if its route sets Host', async () => {
    expect(of(await received('/changed/x', ['Host: gw.test']), /host$/i)).toEqual([
      ['host', 'app.internal:81'],
    ])
  })

  it('keeps the client’s headers if its route sets no headers', async () => {
    const fields = await received('/plain/x', ['X-Internal: 1', 'X-Secret: 2', 'Cookie: a=b'])
    expect(of(fields, /^(x-internal|x-secret|cookie)$/i)).toHaveLength(3)
    expect(of(fields, /^host$/i)).toEqual([['host', new URL(at.upstream.url).host]])
  })

  it('keeps the headers that its route sets, even if they are named in `Connection`', async () => {
    const fields = await received('/changed/x', ['Connection: close, X-Internal, Host'])
    expect(of(fields, /^(x-internal|host)$/i)).toHaveLength(2)
  })
})

describe('a response', () => {
  it('has exactly one copy of each header that its route sets, and no header that its route removes', async () => {
    at.upstream.answer = (_, response) => {
      response.writeHead(503, [
        ...['X-Frame-Options', 'SAMEORIGIN', 'x-frame-options', 'ALLOW', 'Server', 'secret/1.0'],
        ...[
          'Set-Cookie',
          'a=1',
          'set-cookie',
          'b=2',
          'X-Kept',
          '1',
          'Connection',
          'Strict-Transport-Security',
        ],
      ])
      response.end('down')
    }
    const answer = await call(at.gateway.url, 'GET', '/changed/x')
    expect([answer.status, answer.text]).toEqual([503, 'down'])
    expect(answer.headers.get('x-frame-options')).toBe('DENY')
    expect(answer.headers.get('strict-transport-security')).toBe('max-age=1')
    expect(answer.headers.get('x-kept')).toBe('1')
    expect([answer.headers.get('server'), answer.headers.getSetCookie()]).toEqual([null, []])
  })

  it('does not contain the headers that its route sets if the gateway itself responds', async () => {
    const answer = await ask(at.gateway.url, requestBytes('GET', '/shut', []), 'GET')
    expect([answer?.status, answer && value(answer, 'x-set')]).toEqual([401, undefined])
  })

  it('has no trailer that its route removes', async () => {
    at.upstream.answer = (_, response) => {
      response.writeHead(200, { trailer: 'server, x-sum' })
      response.write('x')
      response.addTrailers({ server: 'secret/1.0', 'x-sum': '1' })
      response.end()
    }
    const answer = await ask(at.gateway.url, requestBytes('GET', '/changed/x', []), 'GET')
    expect(answer?.trailers).toEqual([['x-sum', '1']])
  })
})

describe('an identity assertion', () => {
  const bearer = () => [`Authorization: Bearer ${user.access}`]
  const assertionsOf = (fields: [string, string][]) =>
    of(fields, /peage.?assertion/i).map(([, token]) => token)

  it('identifies the user to one upstream, is valid for at most a minute, and can be verified with the public keys', async () => {
    const [token = '', ...more] = assertionsOf(await received('/asserted/x', bearer()))
    expect(more).toEqual([])
    const keys = createLocalJWKSet(
      (await call(at.gateway.url, 'GET', '/.well-known/jwks.json')).body as unknown as JSONWebKeySet,
    )
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      issuer: 'peage',
      audience: 'app',
      typ: 'JWT',
      requiredClaims: ['exp', 'iat'],
      currentDate: new Date(at.gateway.clock.at),
    })
    expect(protectedHeader.typ).toBe('JWT')
    expect([payload.sub, payload.plan]).toEqual([String(user.id), 'premium'])
    expect(Number(payload.exp) - Number(payload.iat)).toBeLessThanOrEqual(60)
    expect(payload).not.toHaveProperty('email')
  })

  it('is sent only for authenticated requests on routes with `identity_assertion`; assertions of the client are removed', async () => {
    const forged = ['X-Peage-Assertion: forged', 'x_peage_assertion: forged']
    expect(assertionsOf(await received('/asserted/x', forged))).toEqual([])
    expect(assertionsOf(await received('/plain/x', [...forged, ...bearer()]))).toEqual([])
    const [token, ...more] = assertionsOf(await received('/asserted/x', [...forged, ...bearer()]))
    expect([token?.split('.').length, more]).toEqual([3, []])
  })

  it('contains the new plan of a user soon after the plan changes', async () => {
    const other = await newUser(at.gateway, 'free')
    const planOf = async () => {
      const fields = await received('/asserted/x', [`Authorization: Bearer ${other.access}`])
      const [token = ''] = assertionsOf(fields)
      const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
        plan: string
      }
      expect(of(fields, /^x-user-plan$/)).toEqual([['x-user-plan', claims.plan]])
      return claims.plan
    }
    expect(await planOf()).toBe('free')
    await at.gateway.sql("update users set plan = 'pro' where id = $1", [other.id])
    await expect.poll(planOf).toBe('pro')
  })
})
