// Tests that the shape check finds the same errors and sets the same defaults as ajv.
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { type FormatName, formatError, formats } from '../../../src/config/formats/formats.ts'
import { schema } from '../../../src/config/sections/schema.ts'
import { checkShape, type ShapeError } from '../../../src/config/sections/shape.ts'
import { caseFile } from '../../../src/config/sections/tests.ts'
import { runs } from '../../support/property-runs.ts'

// The schema contains defaults in unions, which are only documentation. With `strictSchema`, ajv would refuse these
// defaults.
const ajv = new Ajv2020({ allErrors: true, useDefaults: true, strictSchema: false })
for (const name of Object.keys(formats) as FormatName[]) {
  ajv.addFormat(name, text => formatError(name, text) === undefined)
}

const whole = parse(`
server: { listen: 127.0.0.1:1, workers: auto, trusted_proxies: [10.0.0.0/8], tls: { cert: c, key: k },
          log: { level: warn, requests: false }, cors: { origins: ["*"], expose_headers: [X-A] } }
admin: { token: 0123456789abcdef, tokens: { a: 0123456789abcdef } }
storage: { redis: { sentinels: ["a:1"], name: n }, pool: 3 }
auth: { keys: [a], hashing: { concurrency: 1 }, rate_limits: { register: 0, refresh: 1/1m } }
limits: { free_daily: 2 }
upstreams:
  a: { targets: ["http://a"], health: { path: / }, circuit_breaker: {}, tls: { ca: x, server_name: y } }
routes:
  - { path: /a, upstream: a, methods: [GET], plans: [pro], rate_limit: 0, allow_in_path: [semicolon],
      headers: { request: { set: { A: b }, remove: [C] } }, cors: { origins: ["http://a"] }, timeout: 1s }
tests:
  - { request: GET /a, as: { plan: free, used_today: 1 }, expect: { status: 401 } }
  - { request: GET /a, as: pro, host: a.b, expect: {} }
`) as Tree
type Tree = { [key: string]: unknown }

/** Generates a key. Each key is valid in some places of the file and unknown in all other places. */
const key = fc.constantFrom(
  'listen',
  'name',
  'cluster',
  'a',
  'a b',
  '',
  '~/',
  'tls',
  'constructor',
  '__proto__',
  'a\nb',
)
const value = fc.constantFrom<unknown>(
  ...[
    undefined,
    null,
    true,
    0,
    1,
    -1,
    1.5,
    Number.NaN,
    2 ** 53,
    '',
    'a',
    'auto',
    '0',
    '1/1m',
    'free',
    '\u{1F600}',
  ],
  ...[
    [],
    {},
    [1],
    ['free'],
    { a: 1 },
    { cluster: [] },
    { cluster: ['a:1'] },
    { plan: 'pro' },
    { sentinels: [''] },
  ],
)
/**
 * Generates a change of a file: the path to an existing key, a new key, a value, and a boolean. If the boolean is true,
 * the new key gets the value. If it is false, the existing key gets the value.
 */
const change = fc.tuple(fc.array(fc.nat(20), { maxLength: 6 }), key, value, fc.boolean())

function changed(tree: Tree, changes: [number[], string, unknown, boolean][]): Tree {
  const copy = structuredClone(tree)
  for (const [way, name, put, isBeside] of changes) {
    let holder: object = copy
    let last: string | undefined
    for (const step of way) {
      const keys = Object.keys(holder)
      const next = keys[step % (keys.length || 1)]
      if (next === undefined) break
      const below: unknown = Reflect.get(holder, next)
      last = next
      if (typeof below !== 'object' || below === null) break
      if (way.at(-1) !== step) holder = below
    }
    const at = isBeside || last === undefined ? name : last
    Object.defineProperty(holder, at, {
      value: structuredClone(put),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  return copy
}

function flat(errors: readonly ShapeError[]): string[] {
  return errors.flatMap(({ branches = [], pointer, keyword, key }) => [
    ...branches.flatMap(flat),
    `${pointer} ${keyword} ${key ?? ''}`,
  ])
}

describe.each([
  ['a configuration', schema, whole],
  ['a file of test cases', caseFile, { tests: whole.tests }],
])('%s', (_, described, valid) => {
  const validate = ajv.compile(JSON.parse(JSON.stringify(described)))

  function expectSame(tree: Tree): void {
    const theirs = structuredClone(tree)
    validate(theirs)
    const expected = (validate.errors ?? []).map(
      ({ instancePath, keyword, params }) =>
        `${instancePath} ${keyword} ${params.missingProperty ?? params.additionalProperty ?? ''}`,
    )
    expect(flat(checkShape(described, tree))).toEqual(expected)
    expect(tree).toEqual(theirs)
  }

  it('has the errors that ajv finds if it is unchanged or empty', () => {
    expect(checkShape(described, structuredClone(valid)).map(({ pointer }) => pointer)).toEqual([
      '/tests/1/expect',
    ])
    expectSame(structuredClone(valid))
    expectSame({})
  })

  it('with 1 to 6 random changes has the errors that ajv finds, in the same order', () => {
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), changes =>
        expectSame(changed(valid, changes)),
      ),
      { numRuns: runs(2_000) },
    )
  })
})
