// Tests aliases, merge keys, and files that could exhaust the memory or the CPU of the process.
import { describe, expect, it } from 'vitest'
import { configOf, linesOf, load } from '../reading.ts'

describe('YAML', () => {
  it('the message of a syntax error does not quote the file, even if a line ends in a carriage return', () => {
    expect(linesOf('%\rhunter2').join()).toMatch(/^1:(?!.*hunter2|.*\p{Cc})/u)
  })

  it('aliases and merge keys are supported, and the own keys of a mapping override merged keys', () => {
    const { routes } = configOf(`
upstreams: { a: { targets: ["http://a"] } }
routes:
  - &base { path: /x, upstream: a, methods: &m [GET] }
  - { <<: *base, path: /y, methods: *m }
  - <<: [{ path: /z, auth: none }, *base]
`)
    expect(routes.map(({ path, methods, auth, upstream }) => ({ path, methods, auth, upstream }))).toEqual([
      { path: '/x', methods: ['GET'], auth: 'required', upstream: 'a' },
      { path: '/y', methods: ['GET'], auth: 'required', upstream: 'a' },
      { path: '/z', methods: ['GET'], auth: 'none', upstream: 'a' },
    ])
  })

  it('a document that grows exponentially through aliases is refused quickly', () => {
    for (const step of ['[*L, *L, *L, *L, *L, *L, *L, *L]', '{ <<: [*L, *L, *L, *L, *L, *L, *L, *L] }']) {
      const levels = Array.from(
        { length: 12 },
        (_, level) => `l${level + 1}: &l${level + 1} ${step.replaceAll('*L', `*l${level}`)}`,
      )
      const started = performance.now()
      // The unknown keys cause problems in column 1. A problem in another column shows that the aliases were refused.
      expect(linesOf(['l0: &l0 {}', ...levels].join('\n'))).toContainEqual(
        expect.not.stringMatching(/^\d+:1 /),
      )
      expect(performance.now() - started).toBeLessThan(5_000)
    }
  })

  it('a document that is nested too deeply for the stack is refused, with and without aliases', () => {
    for (const opening of ['[', '{ a: ', '- ', '? ', '[? ']) {
      expect(linesOf(`auth:\n  ${opening.repeat(20_000)}`)).toEqual([
        expect.stringMatching(/^2:\d+ {2}\(file\) /),
      ])
    }
    const chain = Array.from({ length: 5_000 }, (_, level) => `l${level + 1}: &l${level + 1} [*l${level}]`)
    for (const last of ['x: *l5000', 'x: { <<: *l5000 }']) {
      expect(linesOf(['l0: &l0 {}', ...chain, last].join('\n')).length).toBeGreaterThan(0)
    }
  })

  it('a %YAML 1.1 directive does not enable the booleans and dates of YAML 1.1', () => {
    expect(configOf('%YAML 1.1\n---\nauth: { issuer: yes, audience: 2001-01-01 }').auth).toMatchObject({
      issuer: 'yes',
      audience: '2001-01-01',
    })
  })

  it('keys like __proto__ and constructor do not change a prototype', () => {
    load(
      '__proto__: { polluted: 1 }\nupstreams: { constructor: { targets: ["http://a"] } }\nserver: { __proto__: { polluted: 1 } }',
    )
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    expect(
      configOf(
        'upstreams: { constructor: { targets: ["http://a"] } }\nroutes: [{ path: /x, upstream: constructor }]',
      ).upstreams.constructor,
    ).toMatchObject({ targets: [{ url: 'http://a', weight: 100 }] })
  })

  it('a byte order mark and CRLF do not shift the line and column of a problem', () => {
    expect(linesOf('\uFEFFservr: 1\r\nlimits:\r\n  x: 1\r\n')).toEqual([
      expect.stringMatching(/^1:1 {2}servr/),
      expect.stringMatching(/^3:3 {2}limits\.x/),
    ])
  })
})
