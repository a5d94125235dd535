// Returns the keys of the configuration schema in the notation of the pages under docs/.
import { jsonSchema } from '../../src/config/json-schema.ts'

export interface Part {
  properties?: Record<string, Part>
  patternProperties?: Record<string, Part>
  items?: Part
  anyOf?: Part[]
  required?: string[]
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  minimum?: number
  maximum?: number
  pattern?: string
  default?: unknown
}

export interface Key {
  path: string
  /** The default in the notation of the page, for example `required`, `none` or `empty`. */
  byDefault: string
  part: Part
}

export function schemaKeys(): Key[] {
  return keysOf(jsonSchema() as Part, '')
}

function keysOf(part: Part, path: string, required = false): Key[] {
  if (part.properties !== undefined) {
    return Object.entries(part.properties).flatMap(([name, inner]) =>
      keysOf(inner, path === '' ? name : `${path}.${name}`, part.required?.includes(name)),
    )
  }
  const [named] = Object.values(part.patternProperties ?? {})
  if (named?.properties !== undefined) return keysOf(named, `${path}.NAME`)
  if (part.items?.properties !== undefined) return keysOf(part.items, `${path}[]`)
  const forms = part.anyOf?.filter(form => form.properties !== undefined) ?? []
  const byDefault = required ? 'required' : defaultOf(part)
  return [{ path, byDefault, part }, ...forms.flatMap(form => keysOf(form, path))]
}

function defaultOf({ default: value }: Part): string {
  if (value === undefined) return 'none'
  if (value === '') return 'empty'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
