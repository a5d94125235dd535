// Tests that only web pages from listed origins can read responses. They can use credentials only if the route allows
// credentials.
import { describe, expect, it } from 'vitest'
import type { RouteConfig } from '../../../src/config/sections/schema.ts'
import { createCorsPolicies, readPreflight, replacedHeaders } from '../../../src/gate/routing/cors.ts'
import { aRequest } from '../a-request.ts'
import { routeWith } from '../a-route.ts'

type Cors = NonNullable<RouteConfig['cors']>

const page = 'https://app.example.com'
const corsWith = (declared: Partial<Cors>): Cors => ({
  ...{ origins: [page], credentials: false, expose_headers: [], max_age: 600_000 },
  ...declared,
})
const policyOf = (declared: Partial<Cors>) => {
  const policy = createCorsPolicies(corsWith(declared), [])?.(undefined)
  if (policy === undefined) throw new Error('no policy')
  return policy
}
const asking = { method: 'PUT', headers: undefined, origin: page }
const exposed = 'X-Peage-Error, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy'

describe('a response', () => {
  it('can be read only by pages from the listed origins, and has the header Vary: Origin', () => {
    const policy = policyOf({ expose_headers: ['X-Total'] })
    expect(policy.answer(page)).toEqual({
      vary: 'Origin',
      'access-control-allow-origin': page,
      'access-control-expose-headers': `${exposed}, X-Total`,
    })
    for (const other of [undefined, 'null', '*', 'https://evil.example', `${page}.evil.example`]) {
      expect(policy.answer(other)).toEqual({ vary: 'Origin' })
    }
  })

  it('if the route allows all origins, can be read by every page, and contains * instead of the origin', () => {
    const policy = policyOf({ origins: ['*'] })
    expect(policy.answer('https://any.example')['access-control-allow-origin']).toBe('*')
    expect(policy.answer(undefined)).toEqual({ vary: 'Origin' })
    expect(policy.preflight({ ...asking, origin: 'https://any.example' }, ['GET'])).toMatchObject({
      'access-control-allow-origin': '*',
    })
  })

  it('can be read after a request with credentials only if the route allows credentials', () => {
    expect(policyOf({ credentials: true }).answer(page)['access-control-allow-credentials']).toBe('true')
    expect(policyOf({}).answer(page)['access-control-allow-credentials']).toBeUndefined()
  })
})

describe('a preflight', () => {
  it('receives a response with the methods of the path, the requested headers and max_age', () => {
    const policy = policyOf({ max_age: 90_500 })
    expect(policy.preflight({ ...asking, headers: 'authorization, X-Trace' }, ['GET', 'HEAD'])).toEqual({
      vary: 'Origin',
      'access-control-allow-origin': page,
      'access-control-allow-methods': 'GET, HEAD',
      'access-control-allow-headers': 'authorization, X-Trace',
      'access-control-max-age': '90',
    })
  })

  it('from an origin that is not listed receives no permission', () => {
    expect(policyOf({}).preflight({ ...asking, origin: 'https://evil.example' }, ['GET'])).toEqual({
      vary: 'Origin',
    })
  })

  it('receives the requested headers only if they are a valid list of header names', () => {
    const headersOf = (headers: string) =>
      policyOf({}).preflight({ ...asking, headers }, ['GET'])['access-control-allow-headers']
    expect(policyOf({}).preflight(asking, ['GET'])).not.toHaveProperty('access-control-allow-headers')
    for (const headers of ['', 'a: b', 'a"', 'a\r\nx', '<a>', 'é', 'a;b'])
      expect(headersOf(headers)).toBeUndefined()
    expect(headersOf("a1-_.~!#$%&'*+^`|,\tB")).toBe("a1-_.~!#$%&'*+^`|,\tB")
  })

  it('if the path allows all methods, receives the usual methods, and also the requested method if it is valid', () => {
    const methodsOf = (method: string) =>
      policyOf({}).preflight({ ...asking, method }, undefined)['access-control-allow-methods']
    const usual = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
    expect(['PUT', 'PROPFIND', 'no such', 'propfind'].map(methodsOf)).toEqual([
      usual,
      `${usual}, PROPFIND`,
      usual,
      usual,
    ])
  })

  it('is recognized by the method OPTIONS, together with an origin and a requested method', () => {
    const fields = [
      ['origin', page],
      ['access-control-request-method', 'PUT'],
      ['access-control-request-headers', 'x-a'],
    ] as const
    expect(readPreflight(aRequest(fields, { method: 'OPTIONS' }))).toEqual({
      method: 'PUT',
      headers: 'x-a',
      origin: page,
    })
    expect(readPreflight(aRequest(fields, { method: 'GET' }))).toBeUndefined()
    for (const gone of [0, 1]) {
      const others = fields.filter((_, index) => index !== gone)
      expect(readPreflight(aRequest(others, { method: 'OPTIONS' }))).toBeUndefined()
    }
  })
})

it('the gateway replaces every CORS header in the response of the upstream', () => {
  expect([...replacedHeaders].sort()).toEqual([
    'access-control-allow-credentials',
    'access-control-allow-headers',
    'access-control-allow-methods',
    'access-control-allow-origin',
    'access-control-allow-private-network',
    'access-control-expose-headers',
    'access-control-max-age',
  ])
})

describe('the CORS policy of a route', () => {
  it('is the policy of the route itself, otherwise the policy of the server, otherwise none', () => {
    const own = routeWith({ cors: corsWith({ origins: ['https://own.example'] }) })
    const plain = routeWith({})
    const policies = createCorsPolicies(corsWith({}), [own, plain])
    expect(policies?.(own)?.answer('https://own.example')).toHaveProperty('access-control-allow-origin')
    expect(policies?.(own)?.answer(page)).toEqual({ vary: 'Origin' })
    for (const route of [plain, undefined]) {
      expect(policies?.(route)?.answer(page)).toHaveProperty('access-control-allow-origin', page)
    }
    const routesOnly = createCorsPolicies(undefined, [own, plain])
    expect([routesOnly?.(own), routesOnly?.(plain)]).toEqual([expect.anything(), undefined])
    expect(createCorsPolicies(undefined, [plain])).toBeUndefined()
  })
})
