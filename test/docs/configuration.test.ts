// Tests that docs/configuration.md lists exactly the keys of the schema, each with its default.
import { describe, expect, it } from 'vitest'
import { keepImmutable } from '../../src/config/reload-plan.ts'
import { configOf, load } from '../config/reading.ts'
import { codeRows, plain, rowsUnder } from './read-tables.ts'
import { type Part, schemaKeys } from './schema-keys.ts'

/** Returns the words that the type cell of a key must contain: allowed values, the limits of an integer, or `rate`. */
function wordsOf({
  type,
  const: literal,
  enum: values,
  minimum,
  maximum,
  pattern,
  anyOf = [],
}: Part): string[] {
  if (type === 'boolean') return [literal === undefined ? 'boolean' : `\`${literal}\``]
  if (values !== undefined) return values.map(value => `\`${value}\``)
  if (type === 'integer') {
    return [minimum, maximum].flatMap(bound => (bound === undefined ? [] : [bound.toLocaleString('en')]))
  }
  if (pattern?.includes('[0-9]+/[0-9]+')) return ['rate']
  return anyOf.flatMap(wordsOf)
}

/** The tables of keys have four columns: key, type, default and meaning. */
const written = codeRows('configuration.md').filter(({ length }) => length === 4)
const keys = schemaKeys()

describe('docs/configuration.md', () => {
  it('contains all keys of the schema and no other key, each once and with its default', () => {
    expect(keys.length).toBeGreaterThan(40)
    expect(written.map(([key, , byDefault]) => [plain(key), plain(byDefault)]).sort()).toEqual(
      keys.map(({ path, byDefault }) => [path, byDefault]).sort(),
    )
  })

  it('contains all warnings of `peage check` and no other warning, with the same texts', () => {
    const file = (smtp: string) => `
admin: { listen: "127.0.0.1:8081", tokens: { cli: a-token-of-some-length } }
plans: [{ name: free, quotas: { spare: 1/day, zero: 0 } }, { name: pro }]
server: { public_url: "https://a.example" }
auth:
  return_urls: ["https://b.example/", "http://localhost/"]
  providers: { one: { issuer: "https://c.example", client_id: a, client_secret: b } }
${smtp === '' ? '' : `mail: { smtp: "${smtp}", from: a@example.com }`}
upstreams:
  twice: { targets: ["http://a", "http://a"] }
  off: { targets: [{ url: "http://10.0.0.1", weight: 0 }], resolve: { every: 1s } }
  spare: { targets: ["http://b"] }
  own: { targets: ["http://127.0.0.1:8080", "http://127.0.0.1:8081"] }
routes:
  - { path: /a, upstream: twice }
  - { path: /b, upstream: off }
  - { path: /c, upstream: own, plans: [free], quota: zero }
`
    const said = ['', 'log', 'smtp://mail.example.com?tls=off'].flatMap(smtp => {
      const { warnings } = load(file(smtp))
      return (warnings?.problems ?? []).map(({ message }) => message)
    })
    expect(
      rowsUnder('## Warnings', 'configuration.md')
        .map(([warning]) => plain(warning))
        .sort(),
    ).toEqual([...new Set(said)].sort())
  })

  it('describes each key in at most 15 words', () => {
    const isDescribed = (meaning = '') => meaning.length >= 10 && meaning.split(' ').length <= 15
    expect(written.filter(([, , , meaning]) => !isDescribed(meaning))).toEqual([])
  })

  it('shows the allowed values or the limits of each key for which the schema has them', () => {
    const limited = keys.filter(({ part }) => wordsOf(part).length > 0)
    expect(limited.length).toBeGreaterThan(40)
    const types = new Map(written.map(([key, type = '']) => [plain(key), type]))
    const lacking = limited.filter(
      ({ path, part }) => !wordsOf(part).every(word => types.get(path)?.includes(word)),
    )
    expect(lacking.map(({ path }) => path)).toEqual([])
  })

  it('lists exactly the keys whose changes need a restart', () => {
    const now = configOf('server: {}')
    const next = configOf(`
server: { listen: "127.0.0.1:1", workers: 2, tls: { cert: a, key: b } }
storage:
  postgres: postgres://a
  postgres_listen: postgres://b
  redis: redis://a
  pool: 1
  data_dir: ./other
auth: { key_secret: a-secret-of-some-length, key_secret_old: another }
admin: {}
`)
    const moved = configOf('admin: { listen: "127.0.0.1:1" }')
    const pointers = [
      ...keepImmutable(now, next).restartRequired,
      ...keepImmutable(configOf('admin: {}'), moved).restartRequired,
    ]
    expect(
      rowsUnder('### Changes that need a restart', 'configuration.md')
        .map(([key]) => plain(key))
        .sort(),
    ).toEqual(pointers.map(pointer => pointer.slice(1).replaceAll('/', '.')).sort())
  })
})
