// What `${…}` is replaced with, and that no value can change the file's structure.
import { describe, expect, it } from 'vitest'
import { configOf, linesOf } from '../reading.ts'

const issuerOf = (scalar: string, env = {}, files = {}) =>
  configOf(`auth:\n  issuer: ${scalar}`, env, files).auth.issuer

describe('inside a scalar', () => {
  it.each([
    ['${A}', { A: 'x' }, 'x'],
    ['${A:-d}', {}, 'd'],
    ['${A:-d}', { A: '' }, 'd'],
    ['${A:-d}', { A: 'x' }, 'x'],
    ['a-${A}-${B:-b}-c', { A: 'x' }, 'a-x-b-c'],
    ['"${A}"', { A: 'x' }, 'x'],
    ["'${A}'", { A: 'x' }, 'x'],
    ['$${A}', { A: 'x' }, '${A}'],
    ['$A $$ {A}', { A: 'x' }, '$A $$ {A}'],
    ['${A}', { A: '${B} $${C}' }, '${B} $${C}'],
    ['${A}', { A: "$& $1 $' $`" }, "$& $1 $' $`"],
    ['${A:-x:-y}', {}, 'x:-y'],
    ['${file}', { file: 'x' }, 'x'],
    ['${file:-d}', {}, 'd'],
  ])('%s with %j is %j', (scalar, env, value) => {
    expect(issuerOf(scalar, env)).toBe(value)
  })

  it('a file is read without its last line break', () => {
    const files = { '/run/secrets/x': 'one\ntwo\n', crlf: 'one\r\n' }
    expect(issuerOf('${file:/run/secrets/x}', {}, files)).toBe('one\ntwo')
    expect(issuerOf('a${file:crlf}b', {}, files)).toBe('aoneb')
  })

  it('a value that looks like YAML stays text', () => {
    for (const value of [
      'a: b',
      '- a',
      '{ x: y }',
      '[1]',
      '"',
      '# c',
      '&a',
      '*a',
      'x\nroutes: []',
      '42',
      'true',
      'null',
    ]) {
      expect(issuerOf('${A}', { A: value })).toBe(value)
    }
  })

  it('is a number or a boolean where the schema wants one and the text is one', () => {
    const text = 'storage: { pool: "${P}" }\nserver: { log: { requests: "${R}" } }'
    const { storage, server } = configOf(text, { P: '7', R: 'false' })
    expect([storage.pool, server.log.requests]).toEqual([7, false])
    expect(linesOf(text, { P: '7x', R: 'no' })).toEqual([
      '1:18  storage.pool  must be a whole number',
      '2:28  server.log.requests  must be true or false',
    ])
  })

  it('is checked like any other value once it is a number', () => {
    expect(linesOf('limits:\n  free_daily: ${N}', { N: '0' })).toEqual([
      '2:15  limits.free_daily  must be at least 1',
    ])
  })

  it('leaves what was written in quotes a text', () => {
    expect(linesOf('storage: { pool: "7" }')).toEqual(['1:18  storage.pool  must be a whole number'])
  })

  it('does not happen in keys', () => {
    expect(linesOf('${A}: 1', { A: 'server' })).toEqual([
      '1:1  ["${A}"]  unknown key; known here: server, admin, storage, auth, account, limits, subscription, webhooks, mail, events, upstreams, routes, tests',
    ])
  })
})

describe('what cannot be replaced', () => {
  const unset = (name: string) =>
    `2:11  auth.issuer  needs ${name}, which is not set in the environment; set it or write \${${name}:-default}`
  const unreadable =
    '2:11  auth.issuer  has a ${…} that cannot be read; write ${NAME}, ${NAME:-default} or ${file:/path}, or $${ for ${'

  it.each([
    ['${A}', [unset('A')]],
    ['${A}${B}${A}', [unset('A'), unset('B')]],
    ['${constructor}', [unset('constructor')]],
    ['${__proto__}', [unset('__proto__')]],
    ['${A', [unreadable]],
    ['${}', [unreadable]],
    ['${A-B}', [unreadable]],
    ['${A:?oops}', [unreadable]],
    ['${A:-${B}}', [unreadable]],
    ['${file:/nope}', ['2:11  auth.issuer  cannot read the file "/nope" (no such file)']],
  ])('%s is said at its place, once', (scalar, lines) => {
    expect(linesOf(`auth:\n  issuer: ${scalar}`)).toEqual(lines)
  })

  it('brings nothing else in its train', () => {
    expect(linesOf('routes:\n  - path: ${P}\n    upstream: ${U}\n    methods: ["${M}"]\n')).toEqual([
      expect.stringContaining('2:11  routes[0].path  needs P'),
      expect.stringContaining('3:15  routes[0].upstream  needs U'),
      expect.stringContaining('4:15  routes[0].methods[0]  needs M'),
    ])
  })

  it('inside { } and [ ] is told apart from other syntax errors', () => {
    expect(linesOf('auth: { issuer: ${A} }')).toEqual([
      '1:18  (file)  is not valid YAML: inside { } and [ ] put ${…} in quotes',
    ])
  })
})
