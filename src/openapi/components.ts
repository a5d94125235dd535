// The components that an OpenAPI document defines once and refers to by `$ref`: titled schemas, and refusals.
import type { Schema } from '../schema/type.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export interface Components {
  /** The schema as it goes into the document. One with a title, at any depth, becomes a component and a `$ref`. */
  addSchema(schema: Schema): Json
  /** A `$ref` to the response of that name; `make` is called for a new name only. */
  response(name: string, make: () => Json): Json
  /** All components, by name. */
  all(): Readonly<Record<'schemas' | 'responses', { readonly [name: string]: Json }>>
}

export function createComponents(): Components {
  const schemas: Record<string, Json> = {}
  const responses: Record<string, Json> = {}

  function addSchema(json: Json): Json {
    if (Array.isArray(json)) return json.map(addSchema)
    if (typeof json !== 'object' || json === null) return json
    const { title, ...rest } = json as { [key: string]: Json }
    const inner = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, addSchema(value)]))
    if (typeof title !== 'string') return inner
    const before = schemas[title]
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(inner))
      throw new Error(`two schemas have the title ${title}`)
    schemas[title] = inner
    return { $ref: `#/components/schemas/${title}` }
  }

  return {
    // The schema library's own properties are not enumerable, so the JSON round trip drops them.
    addSchema: schema => addSchema(JSON.parse(JSON.stringify(schema)) as Json),
    response(name, create) {
      responses[name] ??= create()
      return { $ref: `#/components/responses/${name}` }
    },
    all: () => ({ schemas: sorted(schemas), responses: sorted(responses) }),
  }
}

function sorted(named: Readonly<Record<string, Json>>): { readonly [name: string]: Json } {
  return Object.fromEntries(Object.entries(named).sort(([a], [b]) => (a < b ? -1 : 1)))
}
