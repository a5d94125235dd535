// docs/configuration.md lists exactly the keys of the schema, each with its default.
import { describe, expect, it } from 'vitest'
import { jsonSchema } from '../../src/config/json-schema.ts'
import { load } from '../config/reading.ts'
import { codeRows, plain, rowsUnder } from './read-tables.ts'

interface Part {
  properties?: Record<string, Part>
  patternProperties?: Record<string, Part>
  items?: Part
  anyOf?: Part[]
  required?: string[]
  default?: unknown
}

/** Returns every key of the schema as `[path, default]`, written as on the page. */
function keysOf(part: Part, path: string, required = false): [string, string][] {
  if (part.properties !== undefined) {
    return Object.entries(part.properties).flatMap(([name, inner]) =>
      keysOf(inner, path === '' ? name : `${path}.${name}`, part.required?.includes(name)),
    )
  }
  const [named] = Object.values(part.patternProperties ?? {})
  if (named?.properties !== undefined) return keysOf(named, `${path}.NAME`)
  if (part.items?.properties !== undefined) return keysOf(part.items, `${path}[]`)
  const forms = part.anyOf?.filter(form => form.properties !== undefined) ?? []
  return [[path, required ? 'required' : defaultOf(part)], ...forms.flatMap(form => keysOf(form, path))]
}

function defaultOf({ default: value }: Part): string {
  if (value === undefined) return 'none'
  if (value === '') return 'empty'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const written = codeRows('configuration.md').filter(([key]) => /^`[a-z_]+(\.|\[)/.test(key ?? ''))

describe('docs/configuration.md', () => {
  it('lists exactly the keys of the schema, each once with its default', () => {
    const keys = keysOf(jsonSchema() as Part, '')
    expect(keys.length).toBeGreaterThan(40)
    expect(written.map(([key, byDefault]) => [plain(key), plain(byDefault)]).sort()).toEqual(keys.sort())
  })

  it('lists every warning as check prints it', () => {
    const file = (smtp: string) => `
admin: { listen: "127.0.0.1:8081", tokens: { cli: a-token-of-some-length } }
mail: { smtp: "${smtp}", from: a@example.com }
upstreams:
  twice: { targets: ["http://a", "http://a"] }
  off: { targets: [{ url: "http://10.0.0.1", weight: 0 }], resolve: { every: 1s } }
  spare: { targets: ["http://b"] }
  own: { targets: ["http://127.0.0.1:8080", "http://127.0.0.1:8081"] }
routes: [{ path: /a, upstream: twice }, { path: /b, upstream: off }, { path: /c, upstream: own }]
`
    const said = ['log', 'smtp://mail.example.com?tls=off'].flatMap(smtp => {
      const { warnings } = load(file(smtp))
      return (warnings?.problems ?? []).map(({ message }) => message)
    })
    expect(
      rowsUnder('### Warnings', 'configuration.md')
        .map(([warning]) => plain(warning))
        .sort(),
    ).toEqual([...new Set(said)].sort())
  })

  it('describes each key', () => {
    expect(written.filter(([, , meaning]) => (meaning ?? '').length < 10)).toEqual([])
  })
})
