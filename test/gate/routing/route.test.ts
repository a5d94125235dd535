// Tests a compiled route: its properties, the path that it forwards to the upstream, and its header rules.
import { describe, expect, it } from 'vitest'
import { parseRequestTarget, type RequestTarget } from '../../../src/gate/parsing/request-target.ts'
import { routeWith } from '../a-route.ts'

const read = (path: string) => parseRequestTarget(path) as RequestTarget

describe('a compiled route', () => {
  it.each([
    ['/', true],
    ['/a/b', true],
    ['/a/:b', false],
    ['/:a/b', false],
    ['/*', false],
    ['/a/*', false],
  ])('with the path %s matches only one path: %s', (path, isLiteral) => {
    expect(routeWith({ path }).isLiteral).toBe(isLiteral)
  })

  it('if it allows GET, also allows HEAD', () => {
    expect(routeWith({ methods: ['GET', 'POST'] }).allowedMethods).toEqual(new Set(['GET', 'POST', 'HEAD']))
    expect(routeWith({ methods: ['POST'] }).allowedMethods).toEqual(new Set(['POST']))
    expect(routeWith({}).allowedMethods).toBeUndefined()
  })

  it('counts as guarded unless it has `auth: none`', () => {
    expect(routeWith({ auth: 'none' }).isGuarded).toBe(false)
    expect([routeWith({ auth: 'required' }), routeWith({ auth: 'optional' })].map(r => r.isGuarded)).toEqual([
      true,
      true,
    ])
  })

  it.each([
    [{ path: '/A/b/*', strip_prefix: '/a/b' }, '/a/%62//c', '/c', '/a/%62'],
    [{ path: '/a/*', strip_prefix: '/a' }, '/A', '/', '/A'],
    [{ path: '/a/*', strip_prefix: '/a' }, '/a/', '/', '/a'],
    [{ path: '/a/*', strip_prefix: '/a' }, '/a//x/', '/x/', '/a'],
    [{ path: '/a/*' }, '/a/b', '/a/b', undefined],
    [{ path: '/:x/b/:y', rewrite: '/n/:y/:x/:z/x' }, '/1/b/%32', '/n/%32/1/:z/x', undefined],
    [{ path: '/a/:x/*', rewrite: '/n/:x/all/*' }, '/a/1/2/3', '/n/1/all/2/3', undefined],
    [{ path: '/a/*', rewrite: '/n/*' }, '/a', '/n', undefined],
    [{ path: '/a/*', rewrite: '/n/*' }, '/a/', '/n/', undefined],
    [{ path: '/a/*', rewrite: '/*' }, '/a', '/', undefined],
    [{ path: '/a/:b', rewrite: '/n/' }, '/a/1', '/n/', undefined],
  ])('with the keys %j forwards %s as %s and strips the prefix "%s"', (declared, path, sent, stripped) => {
    const route = routeWith(declared)
    expect(route.upstreamPath(read(path))).toBe(sent)
    expect(route.strippedPrefix(read(path))).toBe(stripped)
  })
})

describe('the header rules of a route', () => {
  it('do not exist if the route declares none', () => {
    expect(routeWith({})).toMatchObject({
      upstreamHost: undefined,
      requestRules: undefined,
      responseRules: undefined,
    })
    const bare = { request: { set: {}, remove: [] }, response: { set: {}, remove: [] } }
    expect(routeWith({ headers: bare })).toMatchObject({ requestRules: undefined, responseRules: undefined })
  })

  it('replace a request header in every spelling and letter case, and a rule for Host becomes `upstreamHost`', () => {
    const { upstreamHost, requestRules, responseRules } = routeWith({
      headers: {
        request: { set: { 'X-Api_Key': 'k', hOsT: 'inner.example' }, remove: ['X.Debug'] },
        response: { set: {}, remove: [] },
      },
    })
    expect(upstreamHost).toBe('inner.example')
    expect(requestRules).toEqual({ set: ['X-Api_Key', 'k'], remove: new Set(['x-debug', 'x-api-key']) })
    expect(responseRules).toBeUndefined()
  })

  it('replace a response header in every letter case, but in no other spelling', () => {
    const { upstreamHost, requestRules, responseRules } = routeWith({
      headers: {
        request: { set: {}, remove: [] },
        response: { set: { 'X-Frame_Options': 'DENY' }, remove: ['Server'] },
      },
    })
    expect(upstreamHost).toBeUndefined()
    expect(requestRules).toBeUndefined()
    expect(responseRules).toEqual({
      set: ['X-Frame_Options', 'DENY'],
      remove: new Set(['server', 'x-frame_options']),
    })
  })
})
