// CONTRACT §2: what `cors` and `rate_limit` may contain, at the server and at a route.
import { describe, expect, it } from 'vitest'
import { parseOrigin } from '../../../src/config/formats/addresses.ts'
import { FormatError } from '../../../src/config/formats/units.ts'
import { configOf, linesOf } from '../reading.ts'

/** Line 1 declares the upstream a, line 3 the route. */
const route = (keys: string) =>
  `upstreams: { a: { targets: ["http://a"] } }\nroutes:\n  - { path: /x, upstream: a, ${keys} }`

describe('an origin', () => {
  it.each([
    ['*', '*'],
    ['https://app.example.com', 'https://app.example.com'],
    ['HTTPS://App.Example.com:443', 'https://app.example.com'],
    ['http://localhost:5173', 'http://localhost:5173'],
    ['http://[::1]:3000', 'http://[::1]:3000'],
    ['capacitor://localhost', 'capacitor://localhost'],
    ['chrome-extension://abcdefghijklmnop', 'chrome-extension://abcdefghijklmnop'],
  ])('%s is compared as %s', (text, origin) => expect(parseOrigin(text)).toBe(origin))

  it.each([
    '',
    'null',
    'app.example.com',
    '//app.example.com',
    'https://',
    'https://app.example.com/',
    'https://app.example.com/path',
    'https://app.example.com?x',
    'https://app.example.com#x',
    'https://*.example.com',
    'https://*',
    'https://user@app.example.com',
    'https://app.example.com:99999',
    'https://app.example.com:',
    'https://127.1',
    'https://é.example',
    'https://a b',
    ' https://app.example.com',
    'https://app.example.com, https://b.example',
  ])('%j is refused', text => expect(() => parseOrigin(text)).toThrow(FormatError))
})

describe('cors', () => {
  it.each([
    [
      'server: { cors: { origins: ["*"], credentials: true } }',
      '1:48  server.cors.credentials  cannot go with every origin (*): name the origins that may send credentials',
    ],
    [
      route('cors: { credentials: true, origins: ["https://a", "*"] }'),
      '3:51  routes[0].cors.credentials  cannot go with every origin (*): name the origins that may send credentials',
    ],
    [
      'server: { cors: { origins: ["https://a/"] } }',
      '1:29  server.cors.origins[0]  must not end in a slash: browsers send none',
    ],
    [
      route('cors: { origins: ["https://a/b"] }'),
      '3:48  routes[0].cors.origins[0]  must not have a path, a query or a fragment',
    ],
    [route('cors: { origins: [] }'), '3:47  routes[0].cors.origins  must be a list of at least one origin'],
    [
      route('cors: { max_age: 1m }'),
      '3:30  routes[0].cors.origins  is required: a list of at least one origin',
    ],
    [
      route('cors: { origins: ["*"], expose_headers: ["a b"] }'),
      '3:71  routes[0].cors.expose_headers[0]  must be the name of a header field such as X-Total-Count',
    ],
  ])('%s', (text, line) => expect(linesOf(text)).toEqual([line]))

  it('has defaults for all but its origins', () => {
    const { server, routes } = configOf(
      `server: { cors: { origins: ["https://a"], credentials: true } }\n${route('cors: { origins: ["*"] }')}`,
    )
    expect(server.cors).toEqual({
      origins: ['https://a'],
      credentials: true,
      expose_headers: [],
      max_age: 600_000,
    })
    expect(routes[0]?.cors?.origins).toEqual(['*'])
  })
})

describe('the rate limit of a route', () => {
  it.each([
    ['100/1m', { limit: 100, windowMs: 60_000 }],
    ['0', null],
    ['"0"', null],
  ])('%s', (text, limit) =>
    expect(configOf(route(`rate_limit: ${text}`)).routes[0]?.rate_limit).toEqual(limit),
  )

  it('is a rate', () => {
    expect(linesOf(route('rate_limit: 100'))).toEqual([
      '3:42  routes[0].rate_limit  must be a rate such as 300/1m, or 0 to switch it off',
    ])
  })
})
