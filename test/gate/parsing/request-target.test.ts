// Tests that an accepted path has the same meaning for the guards and for the most lenient upstream.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  isHost,
  normalizeHost,
  parseRequestTarget as readAny,
} from '../../../src/gate/parsing/request-target.ts'
import { isUnder, worstCase } from '../../security/readings.ts'
import { runs } from '../../support/property-runs.ts'
import { routeWith } from '../a-route.ts'

const often = { seed: 20_261_121, numRuns: runs(5_000) }

const guarded = '/api/v1/private'

/** Parses a target for a route that allows no ambiguity. `allow-ambiguous-path.test.ts` tests other routes. */
const readTarget = (text: string) => {
  const read = readAny(text)
  return read?.ambiguities === 0 ? read : undefined
}

/** Generates the pieces from which confusing targets are built. */
const piece = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      ...'/ / / // . .. ... %2e %2E %252e %25252e %2f %2F %252f %5c %5C'.split(' '),
      ...'\\ ; ;x=1 %3b %253B ? %3f # %23 % %% %2 %25 %2525 %zz %00 %0a'.split(' '),
      ...'%20 %09 ~ %7e @ : & %c0%ae %e2%82%ac %ff %c2%a0 %E2%80%8B'.split(' '),
      ...'api API v1 V%31 private PrIvAtE %70rivate %2570rivate privat%65 public x'.split(' '),
      ...'http:// HTTPS://gw.test gw.test :80 user@ [::1]'.split(' '),
      ' ',
      '\xe9',
    ),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 4 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 2 }) },
)
const target = fc
  .tuple(
    fc.constantFrom('/', '/', '/', '', guarded, '/public/', `${guarded}/`),
    fc.array(piece, { maxLength: 12 }),
  )
  .map(([start, pieces]) => start + pieces.join(''))

/** Generates variants of the guarded path, in which some letters are escaped or in upper case. */
const spelling = fc
  .array(
    fc.tuple(fc.constantFrom(...guarded), fc.constantFrom('', '', '', '', 'upper', 'hex', 'HEX', 'twice')),
    {
      minLength: guarded.length,
      maxLength: guarded.length,
    },
  )
  .map(choices =>
    choices
      .map(([, how], i) => {
        const letter = guarded[i] as string
        const hex = letter.charCodeAt(0).toString(16)
        if (how === 'upper') return letter.toUpperCase()
        if (how === 'hex') return `%${hex}`
        if (how === 'HEX') return `%${hex.toUpperCase()}`
        return how === 'twice' ? `%25${hex}` : letter
      })
      .join(''),
  )

describe('a path that is parsed repeatedly', () => {
  it('has the same result each time, but with the query and authority of the current request', () => {
    const paths = Array.from({ length: 3_000 }, (_, at) => `/Read/${at}/%7Eit//`)
    for (let turn = 0; turn < 2; turn += 1) {
      for (const [at, path] of paths.entries()) {
        const merged = `/Read/${at}/%7Eit/`
        const read = {
          path: merged,
          unmergedPath: path,
          rawSegments: ['Read', String(at), '%7Eit'],
          segments: ['read', String(at), '~it'],
        }
        expect(readAny(`${path}?turn=${turn}`)).toMatchObject({ ...read, query: `?turn=${turn}` })
        expect(readAny(`http://a.example${path}`)).toMatchObject({
          ...read,
          authority: 'a.example',
          query: '',
        })
      }
    }
  })

  it('is refused each time if the path is invalid, or if the query after a valid path is invalid', () => {
    for (let turn = 0; turn < 2; turn += 1) {
      expect(readAny('/read/../it')).toBeUndefined()
      expect(readAny('/read/it')).toMatchObject({ path: '/read/it', authority: undefined })
      expect(readAny('/read/it?#')).toBeUndefined()
    }
  })
})

describe('the path rules', () => {
  it('never throw an exception, whatever the input', () => {
    fc.assert(
      fc.property(fc.oneof(target, fc.string(), fc.string({ unit: 'binary', maxLength: 40 })), text => {
        readAny(text)
      }),
      often,
    )
  })

  it('either refuse a target, or agree with the most lenient upstream on whether the target is guarded', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          target,
          spelling,
          fc.tuple(target, spelling).map(parts => parts.join('/')),
        ),
        text => {
          const read = readTarget(text)
          if (read === undefined) return
          const ours = `/${read.segments.join('/')}`
          expect([text, isUnder(worstCase(read.path), guarded)]).toEqual([text, isUnder(ours, guarded)])
        },
      ),
      often,
    )
  })

  it('accept a path only if the most lenient upstream splits it into as many segments as the gateway', () => {
    fc.assert(
      fc.property(target, text => {
        const read = readTarget(text)
        if (read === undefined) return
        const segments = worstCase(read.path).split('/').slice(1)
        expect(segments[0] === '' ? 0 : segments.length).toBe(read.segments.length)
        expect(read.rawSegments).toHaveLength(read.segments.length)
        expect(read.path.startsWith('/')).toBe(true)
        expect(read.path).not.toMatch(/\/\/|[^!-~]/)
      }),
      often,
    )
  })

  it('accept the path that they return, and return the same path again', () => {
    fc.assert(
      fc.property(target, text => {
        const read = readTarget(text)
        if (read === undefined) return
        const again = readTarget(read.path + read.query)
        expect(again).toEqual({ ...read, authority: undefined, unmergedPath: undefined })
      }),
      often,
    )
  })

  it('do not change the number of the remaining segments if a route strips or rewrites the start of a path', () => {
    const strip = routeWith({ path: '/public/*', strip_prefix: '/public' })
    const rewrite = routeWith({ path: '/public/:a/*', rewrite: '/new/:a/*' })
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), pieces => {
        const read = readTarget(`/public/x${pieces.join('')}`)
        if (read === undefined) return
        const rest = read.segments.slice(1)
        const [stripped, rewritten] = [strip, rewrite].map(route =>
          worstCase(route.upstreamPath(read)).split('/').slice(1),
        )
        expect(stripped).toHaveLength(rest.length)
        expect(rewritten).toHaveLength(rest.length + 1)
        expect(rewritten?.[0]).toBe('new')
      }),
      often,
    )
  })

  it.each([
    ['/', '/', []],
    ['/A//b/', '/A/b/', ['a', 'b']],
    ['/%41/%C3%89', '/%41/%C3%89', ['a', 'É']],
    ['/%E2%84%AA', '/%E2%84%AA', ['\u212a']],
    ['/a%2Bb', '/a%2Bb', ['a+b']],
    ['/100%25', '/100%25', ['100%']],
    ['/.x/..y/x.y', '/.x/..y/x.y', ['.x', '..y', 'x.y']],
  ])('forward the path %s as %s, and match the segments %j', (text, path, segments) => {
    expect(readTarget(text)).toMatchObject({ path, query: '', segments })
  })

  it('separate the authority of an absolute-form target from its path', () => {
    expect(readTarget('http://GW.test:80/a?b')).toMatchObject({
      authority: 'GW.test:80',
      path: '/a',
      query: '?b',
    })
    expect(readTarget('https://gw.test')).toMatchObject({ authority: 'gw.test', path: '/', query: '' })
    expect(readTarget('http://gw.test?b')).toMatchObject({ authority: 'gw.test', path: '/', query: '?b' })
    for (const text of [
      'http://gw.test@evil.example/',
      'http://',
      'http:///x',
      'ftp://gw.test/',
      'xhttp://gw.test/',
      'gw.test/x',
      '*',
      '',
    ]) {
      expect(readTarget(text)).toBeUndefined()
    }
  })

  it('ignore the letter case, the port and the final dot of a host', () => {
    expect(['A.example:80', 'a.example.', 'a.example.:443', 'A.EXAMPLE:'].map(normalizeHost)).toEqual(
      Array(4).fill('a.example'),
    )
    expect(normalizeHost('[::1]:80')).toBe('[::1]')
    expect(['[2001:db8::1]', '[::ffff:192.0.2.1]:80', 'a:80', 'a:'].map(isHost)).toEqual(Array(4).fill(true))
    expect(
      [
        'a b',
        'a/b',
        'a@b',
        '',
        'a:b',
        '[::1',
        '[::1]x',
        '[zz]',
        '[]',
        'a:1:2',
        'é',
        'a\\b',
        'a#b',
        'a?b',
      ].filter(isHost),
    ).toEqual([])
  })
})
