// Builds the JSON Schema for editors and other programs. The schema contains only standard keywords, and allows `${…}`
// for every scalar.
import { type FormatName, formats } from './formats/formats.ts'
import { schema } from './sections/schema.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/**
 * Returns the JSON Schema 2020-12 that `peage schema` prints. It describes gateway.yaml as written, before `${…}` is
 * replaced and before defaults are filled in.
 */
export function jsonSchema(): object {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'gateway.yaml',
    ...(asWritten(JSON.parse(JSON.stringify(schema))) as object),
    if: { not: { required: ['server'], properties: { server: withForwardAuth } } },
    // biome-ignore lint/suspicious/noThenProperty: this is a keyword of JSON Schema.
    then: { properties: { routes: withUpstreams } },
  }
}

const withForwardAuth = { description: 'Client listener with forward auth.', required: ['forward_auth'] }
const withUpstreams = {
  description: 'Without server.forward_auth, each route needs an upstream.',
  items: { required: ['upstream'] },
}

const PLACEHOLDER = '\\$\\{'

function asWritten(part: Json): Json {
  if (Array.isArray(part)) return part.map(asWritten)
  if (typeof part !== 'object' || part === null) return part
  const { title, description, default: byDefault, format, required, ...given } = part
  const rest = byDefault === '' || typeof byDefault === 'object' ? orNull(given) : given
  const notes = Object.fromEntries(
    Object.entries({ title, description, default: byDefault }).filter(([, note]) => note !== undefined),
  ) as { [key: string]: Json }
  if (rest.type === 'integer' || rest.type === 'boolean' || 'enum' in rest) {
    return { ...notes, anyOf: [rest, { type: 'string', pattern: PLACEHOLDER }] }
  }
  const pattern = format === undefined ? rest.pattern : formats[format as FormatName].pattern
  if (pattern !== undefined) return { ...notes, ...rest, pattern: `${pattern}|${PLACEHOLDER}` }
  const inner = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [
      key,
      key === 'properties' ? eachOf(value) : asWritten(value),
    ]),
  )
  const needed = (required as string[] | undefined)?.filter(key => !hasDefault(rest.properties, key)) ?? []
  return { ...notes, ...inner, ...(needed.length > 0 ? { required: needed } : {}) }
}

/**
 * Adds `null` to the types of a value, so that the file may contain its key without a value. Used for keys whose
 * default is an empty text, a list or a mapping.
 */
function orNull({ type, anyOf, ...rest }: { [key: string]: Json }): { [key: string]: Json } {
  if (Array.isArray(anyOf)) return { ...rest, anyOf: [...anyOf, { type: 'null' }] }
  return { ...rest, type: [type as string, 'null'] }
}

/**
 * Converts each property. The keys here are names of properties, not keywords, even if the name is `default` or
 * `title`.
 */
function eachOf(properties: Json | undefined): Json {
  return Object.fromEntries(Object.entries(properties ?? {}).map(([key, value]) => [key, asWritten(value)]))
}

/** Whether a key has a default. If so, the key may be missing in the file, because the gateway fills in the default. */
function hasDefault(properties: Json | undefined, key: string): boolean {
  const property = (properties as { [key: string]: Json } | undefined)?.[key]
  return typeof property === 'object' && property !== null && 'default' in property
}
