// `routes[].headers`, `allow_in_path` and `identity_assertion`: what `check` refuses, and where (CONTRACT §2, §6).
import { describe, expect, it } from 'vitest'
import { configOf, linesOf } from '../reading.ts'

const upstreams = `upstreams:
  a: { targets: ["http://a"] }
  b: { targets: ["http://b"] }
  alias: { targets: ["HTTP://A:80/"] }
routes:`
const file = (...routes: string[]) => [upstreams, ...routes.map(route => `  - { ${route} }`)].join('\n')
const requestSet = (fields: string) =>
  file(`path: /x, upstream: a, headers: { request: { set: { ${fields} } } }`)
const answerSet = (fields: string) =>
  file(`path: /x, upstream: a, headers: { response: { set: { ${fields} } } }`)
const removed = (direction: string, name: string) =>
  file(`path: /x, upstream: a, headers: { ${direction}: { remove: [${name}] } }`)

const identity = 'says who calls, which only the gateway may'
const framing = 'frames the message or belongs to one connection: only the gateway sets and removes it'

describe('header rules', () => {
  it.each([
    'x-user-id',
    'X_User_Id',
    'X.USER.PLAN',
    'x-user--email',
    'X-Peage-Assertion',
    'x_peage.assertion',
  ])('a request’s %s is the gateway’s alone', name => {
    expect(linesOf(requestSet(`${name}: "1"`))).toEqual([
      `6:59  routes[0].headers.request.set${/^[\w-]+$/.test(name) ? `.${name}` : `["${name}"]`}  ${identity}`,
    ])
    expect(linesOf(removed('request', name))).toEqual([
      `6:61  routes[0].headers.request.remove[0]  ${identity}`,
    ])
  })

  it.each([
    ...[
      'connection',
      'Transfer_Encoding',
      'content-length',
      'TE',
      'upgrade',
      'Keep-Alive',
      'trailer',
      'expect',
    ],
    ...['Proxy-Authorization', 'proxy', 'http2-settings', 'X-Peage-Error'],
  ])('%s is for nobody to set or remove, in either direction', name => {
    expect(linesOf(requestSet(`${name}: "1"`))).toEqual([expect.stringMatching(`^6:59 .*${framing}$`)])
    expect(linesOf(answerSet(`${name}: "1"`))).toEqual([expect.stringMatching(`^6:60 .*${framing}$`)])
    for (const direction of ['request', 'response']) {
      expect(linesOf(removed(direction, name))).toEqual([expect.stringMatching(`${framing}$`)])
    }
  })

  it.each([
    ['"a b": x', 'is no header name'],
    ['"": x', 'is no header name'],
    ['"a:b": x', 'is no header name'],
    ['"x\\r\\ny": x', 'is no header name'],
    ['é: x', 'is no header name'],
    ['__proto__: x', 'is no header name'],
    ['x-a: "b\\nc"', 'must be printable ASCII'],
    ['x-a: "b\\0"', 'must be printable ASCII'],
    ['x-a: " b"', 'must be printable ASCII'],
    ['x-a: é', 'must be printable ASCII'],
    ['x-a: 1, X_A: 2', 'must be text, in quotes'],
    ['x-a: "1", X_A: "2"', 'is set twice, in two spellings'],
    ['via: "1"', 'is the gateway’s own to set'],
    ['X-Request-Id: "1"', 'is the gateway’s own to set'],
  ])('{ %s } %s', (fields, said) => {
    for (const text of [requestSet(fields), answerSet(fields)]) {
      expect(linesOf(text)).toContainEqual(expect.stringContaining(said))
    }
  })

  it('Host may be another, and a host; it cannot be left out', () => {
    expect(linesOf(requestSet('Host: app.internal:8080'))).toEqual([])
    for (const host of ['"a b"', '""', 'a/b', 'a@b']) {
      expect(linesOf(requestSet(`host: ${host}`))).toEqual([expect.stringContaining('must be a host name')])
    }
    expect(linesOf(removed('request', 'host'))).toEqual([expect.stringContaining('is in every request')])
  })

  it('a value from the environment is held to the same', () => {
    const text = requestSet('x-key: "${KEY}"')
    expect(linesOf(text, { KEY: 'secret' })).toEqual([])
    const [line = ''] = linesOf(text, { KEY: 'secret\r\nx-user-id: 1' })
    expect(line).toContain('must be printable ASCII')
    expect(line).not.toContain('secret')
  })

  it('everything else may be set and removed', () => {
    const headers =
      '{ request: { set: { Authorization: "Basic eDp5", X-Env: "" }, remove: [Cookie, X-Forwarded-For] }, response: { set: { Strict-Transport-Security: max-age=1, Set-Cookie: a=b, x-user-id: "1" }, remove: [Server] } }'
    const [route] = configOf(file(`path: /x, upstream: a, headers: ${headers}`)).routes
    expect(route?.headers).toEqual({
      request: { set: { Authorization: 'Basic eDp5', 'X-Env': '' }, remove: ['Cookie', 'X-Forwarded-For'] },
      response: {
        set: { 'Strict-Transport-Security': 'max-age=1', 'Set-Cookie': 'a=b', 'x-user-id': '1' },
        remove: ['Server'],
      },
    })
  })
})

describe('allow_in_path', () => {
  const open = 'path: /files/*, upstream: a, auth: none, allow_in_path: [semicolon, encoded_slash]'
  const line = (which: string) =>
    `6:75  routes[0].allow_in_path[1]  encoded_slash would open a way around the guards of ${which}, which is guarded, at the same upstream; give it an upstream of its own, all of it with auth: none`

  it.each([
    ['path: /x, upstream: a'],
    ['path: /x, upstream: a, auth: optional'],
    ['path: /x, upstream: a, plans: [pro], hosts: [h]'],
    ['path: /x, upstream: a, free_daily: true, methods: [POST]'],
    ['path: /x, upstream: alias'],
  ])('encoded_slash beside { %s } at the same upstream is refused', guarded => {
    expect(linesOf(file(open, guarded))).toEqual([line('routes[1]')])
  })

  it('encoded_slash on a guarded route is refused', () => {
    expect(linesOf(file(open.replace(', auth: none', '').replace('/*,', '/*,            ')))).toEqual([
      line('this route'),
    ])
  })

  it.each([
    [[open]],
    [[open, 'path: /x, upstream: b']],
    [[open, 'path: /x, upstream: a, auth: none']],
    [['path: /x, upstream: a, allow_in_path: [semicolon, trailing_dot, double_encoding, double_slash]']],
    [[open, 'path: /x, upstream: a, auth: nonsense'.replace('auth: nonsense', 'auth: none')]],
  ])('%j is right', routes => expect(linesOf(file(...routes))).toEqual([]))

  it('nothing is concluded from what is not valid', () => {
    expect(linesOf(file(open, 'path: /x, upstream: a, auth: non'))).toEqual([
      expect.stringContaining('routes[1].auth'),
    ])
    expect(linesOf(file('path: /x, upstream: a, allow_in_path: [slash]'))).toEqual([
      expect.stringContaining('routes[0].allow_in_path[0]  must be encoded_slash, semicolon'),
    ])
  })
})

it('two upstreams with one target are one, where a host’s guards are dodged', () => {
  const shut = 'path: /x/*, upstream: a, hosts: [h]'
  expect(linesOf(file(shut, 'path: /*, upstream: alias, auth: none'))).toEqual([
    expect.stringMatching(/^6:13 {2}routes\[0\]\.path {2}is open to other hosts through routes\[1\]/),
  ])
  expect(linesOf(file(shut, 'path: /*, upstream: b, auth: none'))).toEqual([])
})

it('identity_assertion needs somebody to speak of', () => {
  expect(linesOf(file('path: /x, upstream: a, auth: none, identity_assertion: true'))).toEqual([
    '6:62  routes[0].identity_assertion  needs a user: make auth required or optional, or leave it out',
  ])
  expect(linesOf(file('path: /x, upstream: a, auth: optional, identity_assertion: true'))).toEqual([])
})
