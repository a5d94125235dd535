// What routes and upstreams demand of each other (CONTRACT §2).
import { describe, expect, it } from 'vitest'
import { linesOf } from '../reading.ts'

/** Line 1 declares the upstreams a and b, line 2 begins the routes, and each route is one line. */
function routes(...declared: string[]): string {
  const upstreams = 'upstreams: { a: { targets: ["http://a"] }, b: { targets: ["http://b"] } }'
  return [upstreams, 'routes:', ...declared.map(route => `  - { ${route} }`)].join('\n')
}

/** `LINE  path` of every problem. */
const placesOf = (text: string) =>
  linesOf(text).map(line => line.replace(/:\d+ /, ' ').split('  ', 2).join('  '))

describe('one route', () => {
  it.each([
    ['path: /x, upstream: c', '3:27  routes[0].upstream  names no declared upstream; did you mean a?'],
    [
      'path: /x, upstream: toString',
      '3:27  routes[0].upstream  names no declared upstream; declared are a, b',
    ],
    [
      'path: /api/v1/auth/x, upstream: a',
      '3:13  routes[0].path  belongs to the gateway itself and cannot be declared',
    ],
    [
      'path: /API/v1/user/webhook/, upstream: a',
      '3:13  routes[0].path  belongs to the gateway itself and cannot be declared',
    ],
    [
      'path: /x, upstream: a, auth: none, plans: [pro]',
      '3:49  routes[0].plans  needs a user: make auth required or optional, or leave it out',
    ],
    [
      'path: /x, upstream: a, auth: none, free_daily: true',
      '3:54  routes[0].free_daily  needs a user: make auth required or optional, or leave it out',
    ],
    [
      'path: /x, upstream: a, auth: none, verified: true',
      '3:52  routes[0].verified  needs a user: make auth required or optional, or leave it out',
    ],
    [
      'path: /x, upstream: a, auth: none, forward_email: true',
      '3:57  routes[0].forward_email  needs a user: make auth required or optional, or leave it out',
    ],
    [
      'path: /x, upstream: a, strip_prefix: /x, rewrite: /y',
      '3:57  routes[0].rewrite  cannot stand beside strip_prefix; keep one of them',
    ],
    [
      'path: /x/*, upstream: a, strip_prefix: /y',
      '3:46  routes[0].strip_prefix  must be the first literal segments of the path',
    ],
    [
      'path: /x, upstream: a, strip_prefix: /x/y',
      '3:44  routes[0].strip_prefix  must be the first literal segments of the path',
    ],
    [
      'path: /:x/y, upstream: a, strip_prefix: /:x',
      '3:47  routes[0].strip_prefix  must be the first literal segments of the path',
    ],
    [
      'path: /x/*, upstream: a, strip_prefix: /x/*',
      '3:46  routes[0].strip_prefix  must be the first literal segments of the path',
    ],
    ['path: /x, upstream: a, rewrite: /y/*', '3:39  routes[0].rewrite  ends in /*, which the path does not'],
    [
      'path: /x/:id, upstream: a, rewrite: /y/:no',
      '3:43  routes[0].rewrite  has :no, which the path has not (it has :id)',
    ],
  ])('{ %s }', (route, line) => expect(linesOf(routes(route))).toEqual([line]))

  it.each([
    'path: /api/*, upstream: a',
    'path: /api/v1/subscription/upgrade, upstream: a',
    'path: /x, upstream: a, auth: none, free_daily: false, forward_credentials: true',
    'path: /x, upstream: a, free_daily: true, plans: [pro]',
    'path: /x/y/*, upstream: a, strip_prefix: /X/y/',
    'path: /x/:id/*, upstream: a, rewrite: /y/:id/*',
    'path: /x/*, upstream: a, rewrite: /y',
  ])('{ %s } is right', route => expect(linesOf(routes(route))).toEqual([]))

  it('needs an upstream even where none is declared', () => {
    expect(linesOf('routes: [{ path: /x, upstream: a }]')).toEqual([
      '1:32  routes[0].upstream  names no upstream: none is declared',
    ])
  })
})

describe('two routes that can match the same request', () => {
  it.each([
    [['path: /x, upstream: a', 'path: /X/, upstream: b']],
    [['path: /x/:a, upstream: a', 'path: /x/:b, upstream: a, methods: [GET]']],
    [['path: /x, upstream: a, methods: [GET]', 'path: /x, upstream: a, methods: [HEAD]']],
    [['path: /x, upstream: a, hosts: [h, i]', 'path: /x, upstream: a, hosts: ["I.:80"]']],
  ])('%j are told so, at the later one', declared => {
    const [line, ...more] = linesOf(routes(...declared))
    expect(line).toMatch(
      /^4:13 {2}routes\[1\]\.path {2}matches the same requests as routes\[0\]; tell them apart/,
    )
    expect(more).toEqual([])
  })

  it.each([
    [['path: /x, upstream: a', 'path: /x/*, upstream: a']],
    [['path: /x/y, upstream: a', 'path: /x/:b, upstream: a']],
    [['path: /x, upstream: a, methods: [GET]', 'path: /x, upstream: a, methods: [POST]']],
    [['path: /x, upstream: a, hosts: [h]', 'path: /x, upstream: a, hosts: [i]']],
    [['path: /x, upstream: a, hosts: [h]', 'path: /x, upstream: a']],
  ])('%j are not', declared => expect(linesOf(routes(...declared))).toEqual([]))
})

it('two routes of one name are told so, at the later one', () => {
  expect(linesOf(routes('path: /x, upstream: a, name: n', 'path: /y, upstream: a, name: n'))).toEqual([
    '4:36  routes[1].name  is the name of routes[0] too; names are unique',
  ])
})

describe('a guarded path of one host that a laxer route would serve to another', () => {
  const guarded = 'path: /x/*, upstream: a, hosts: [h]'
  it.each([
    [guarded, 'path: /*, upstream: a, auth: none'],
    [guarded, 'path: /x/*, upstream: a, auth: optional'],
    [guarded, 'path: /:any/y, upstream: a, auth: none'],
    [`${guarded}, auth: optional, plans: [free, premium, pro]`, 'path: /*, upstream: a, auth: optional'],
    [`${guarded}, plans: [pro]`, 'path: /*, upstream: a'],
    [`${guarded}, plans: [pro]`, 'path: /*, upstream: a, plans: [pro, premium]'],
    [`${guarded}, auth: optional, free_daily: true`, 'path: /*, upstream: a'],
    [`${guarded}, verified: true`, 'path: /*, upstream: a'],
    [`${guarded}, auth: optional, verified: true`, 'path: /*, upstream: a, auth: optional'],
    [`${guarded}, methods: [GET, POST]`, 'path: /*, upstream: a, auth: none, methods: [POST]'],
  ])('%s beside %s', (shut, open) => {
    const lines = linesOf(routes(shut, open))
    expect(lines).toEqual([
      expect.stringMatching(/^3:13 {2}routes\[0\]\.path {2}is open to other hosts through routes\[1\]/),
    ])
    expect(placesOf(routes(open, shut))).toEqual(['4  routes[1].path'])
  })

  it.each([
    ['another upstream', [guarded, 'path: /*, upstream: b, auth: none']],
    ['other methods', [`${guarded}, methods: [GET]`, 'path: /*, upstream: a, auth: none, methods: [POST]']],
    ['other paths', [guarded, 'path: /y/*, upstream: a, auth: none']],
    ['verified emails on both', [`${guarded}, verified: true`, 'path: /*, upstream: a, verified: true']],
    ['the same guards', [`${guarded}, plans: [pro]`, 'path: /*, upstream: a, plans: [pro]']],
    [
      'stronger guards',
      [`${guarded}, plans: [pro, premium]`, 'path: /*, upstream: a, plans: [pro], free_daily: true'],
    ],
    ['a more specific path, which its own hosts take too', [guarded, 'path: /x/y, upstream: a, auth: none']],
    [
      'a more specific path in one segment',
      ['path: /one/:id, upstream: a, hosts: [h]', 'path: /one/special, upstream: a, auth: none'],
    ],
    ['all plans named', [`${guarded}, plans: [free, premium, pro]`, 'path: /*, upstream: a']],
    [
      'a daily use that no user of plan free has there',
      [`${guarded}, free_daily: true`, 'path: /*, upstream: a, plans: [pro]'],
    ],
    [
      'routes in between that take every path together',
      [
        'path: /:a/:b, upstream: a, hosts: [h]',
        'path: /*, upstream: a, auth: none',
        'path: /:a/*, upstream: a',
      ],
    ],
    [
      'another route of the host, which takes every path',
      [
        'path: /x/*, upstream: a, hosts: [h]',
        'path: /:any/y, upstream: a, auth: none',
        'path: /x/y, upstream: a, auth: none, hosts: [h]',
      ],
    ],
    [
      'the gateway’s own endpoints where both match',
      ['path: /api/:x/auth/*, upstream: a, hosts: [h]', 'path: /:y/v1/auth/*, upstream: a, auth: none'],
    ],
    ['hosts of its own', [guarded, 'path: /*, upstream: a, auth: none, hosts: [i]']],
    ['nothing to guard', [`${guarded}, auth: none`, 'path: /*, upstream: a, auth: none']],
    ['a route in between', [guarded, 'path: /*, upstream: a, auth: none', 'path: /x/*, upstream: a']],
    [
      'a method in between',
      [guarded, 'path: /*, upstream: a, auth: none', 'path: /x/*, upstream: a, methods: [PUT]'],
    ],
  ])('is not said with %s', (_, declared) => expect(linesOf(routes(...declared))).toEqual([]))

  it('is said where the route in between does not stand in between everywhere', () => {
    const open = 'path: /*, upstream: a, auth: none'
    expect(placesOf(routes(guarded, open, 'path: /x/y, upstream: a'))).toEqual(['3  routes[0].path'])
    expect(
      placesOf(
        routes(
          guarded,
          'path: /x/*, upstream: a, auth: none, methods: [GET]',
          'path: /x/*, upstream: a, methods: [POST]',
        ),
      ),
    ).toEqual(['3  routes[0].path'])
  })
})

describe('with problems elsewhere', () => {
  it('rules still speak, of what is valid', () => {
    const text = `${routes('path: /x, upstream: c, timeout: x', 'path: /y, upstream: a, auth: none, plans: [pro], nme: z')}\nserver: 7`
    expect(placesOf(text)).toEqual([
      '3  routes[0].upstream',
      '3  routes[0].timeout',
      '4  routes[1].plans',
      '4  routes[1].nme',
      '5  server',
    ])
  })

  it('nothing is concluded from what is not', () => {
    const text = routes(
      'path: /x, upstream: a, method: [GET]',
      'path: /x, upstream: a, methods: [POST]',
      'path: /x, upstream: a, methods: [put]',
      'path: //, upstream: a, strip_prefix: /y',
      'path: /z, upstream: a, auth: non, plans: [pro]',
      'path: /w, upstream: a, hosts: [w], free_daily: yes',
      'path: /w, upstream: a',
    )
    expect(placesOf(text)).toEqual([
      '3  routes[0].method',
      '5  routes[2].methods[0]',
      '6  routes[3].path',
      '7  routes[4].auth',
      '8  routes[5].free_daily',
    ])
  })
})
