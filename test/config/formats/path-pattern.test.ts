// Tests how the declared path of a route is parsed, and how two declared paths are compared.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  comparisonKey,
  covers,
  isMoreSpecific,
  overlap,
  ownedByGateway,
  type PathPattern,
  parsePathPattern,
} from '../../../src/config/formats/path-pattern.ts'

const literal = (value: string) => ({ kind: 'literal' as const, value })
const param = (name: string) => ({ kind: 'param' as const, name })

describe('a declared path', () => {
  it.each([
    ['/', [], false],
    ['/*', [], true],
    ['/api/v1/Courses/', [literal('api'), literal('v1'), literal('courses')], false],
    ['/api/:id/*', [literal('api'), param('id')], true],
    ['/caf%C3%A9/%3Aid/%2A', [literal('café'), literal(':id'), literal('*')], false],
    ['/v%7Bn%7D/x', [literal('v{n}'), literal('x')], false],
    ['/É/a:b/100%25', [literal('É'), literal('a:b'), literal('100%')], false],
  ])('%s is parsed into segments', (path, segments, wildcard) => {
    expect(parsePathPattern(path)).toEqual({ segments, wildcard })
  })
})

describe('two declared paths', () => {
  it.each([
    ['/a/:x', '/A/:y/', true],
    ['/a/*', '/a/*', true],
    ['/a', '/a/*', false],
    ['/a/:x', '/a/b', false],
    ['/a/b', '/a/:x', false],
  ])('%s and %s match the same paths: %s', (a, b, same) => {
    expect(comparisonKey(parsePathPattern(a)) === comparisonKey(parsePathPattern(b))).toBe(same)
  })

  it.each([
    ['/a/*', '/a', true],
    ['/*', '/x/y/z', true],
    ['/a/:x', '/:y/b', true],
    ['/a/*', '/:x/b/c', true],
    ['/a', '/a/b', false],
    ['/a/b', '/a/c', false],
    ['/a/b/*', '/a', false],
  ])('%s and %s overlap: %s', (a, b, shared) => {
    expect(overlap(parsePathPattern(a), parsePathPattern(b))).toBe(shared)
    expect(overlap(parsePathPattern(b), parsePathPattern(a))).toBe(shared)
  })

  it.each([
    ['/a/b', '/a/:x'],
    ['/a/:x', '/a/*'],
    ['/a', '/a/*'],
    ['/a/*', '/:x/*'],
    ['/a/:x', '/:x/b'],
  ])('have an order, in which %s is more specific than %s', (a, b) => {
    expect(isMoreSpecific(parsePathPattern(a), parsePathPattern(b))).toBe(true)
    expect(isMoreSpecific(parsePathPattern(b), parsePathPattern(a))).toBe(false)
  })

  const segment = fc.constantFrom(literal('a'), literal('b'), param('x'), param('y'))
  const pattern: fc.Arbitrary<PathPattern> = fc.record({
    segments: fc.array(segment, { maxLength: 3 }),
    wildcard: fc.boolean(),
  })
  const paths = [
    '',
    'a',
    'b',
    'c',
    'a/a',
    'a/b',
    'b/c',
    'c/a',
    'a/b/c',
    'b/b/b',
    'a/a/a/a',
    'b/c/a/b',
    'c/c/c/c/c',
  ].map(path => ({ segments: path === '' ? [] : path.split('/').map(literal), wildcard: false }))

  it('overlap if both match one path, and the first covers the second only if the first matches all paths of the second', () => {
    fc.assert(
      fc.property(pattern, pattern, (a, b) => {
        const both = paths.filter(path => covers(a, path) && covers(b, path))
        if (both.length > 0) expect(overlap(a, b)).toBe(true)
        if (covers(a, b)) {
          expect(paths.filter(path => covers(b, path))).toEqual(both)
          expect(overlap(a, b)).toBe(true)
        }
        const isSame = comparisonKey(a) === comparisonKey(b)
        if (isSame) expect(covers(a, b) && covers(b, a)).toBe(true)
        if (overlap(a, b) && !isSame) expect(isMoreSpecific(a, b)).not.toBe(isMoreSpecific(b, a))
      }),
    )
  })
})

describe('the path of a route', () => {
  it.each([
    '/api/v1/auth',
    '/api/v1/auth/*',
    '/API/v1/auth/login',
    '/api/v1/auth/:x/y',
    '/api/v1/user/api-token',
    '/api/v1/user/webhook/x',
    '/.well-known/jwks.json',
  ])('cannot be %s, because the gateway itself handles all requests for this path', path => {
    expect(ownedByGateway(parsePathPattern(path))).toBe(true)
  })

  it.each([
    '/api/*',
    '/*',
    '/api/v1/:section/login',
    '/api/v1/authors',
    '/api/v1/user',
    '/.well-known/*',
    '/api/v1/subscription/upgrade',
  ])('can be %s, because the gateway does not reserve all paths that this path matches', path => {
    expect(ownedByGateway(parsePathPattern(path))).toBe(false)
  })
})
