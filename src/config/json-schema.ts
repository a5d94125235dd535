// Builds the JSON Schema for editors and other programs. It uses standard keywords only and allows `${…}` for every
// scalar.
import { type FormatName, formats } from './formats/formats.ts'
import { schema } from './sections/schema.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** JSON Schema 2020-12 of gateway.yaml before interpolation and defaults, as `peage schema` prints it. */
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
 * Also allows `null`. If the default of a key is an empty text, a list or a mapping, the file may contain the key
 * without a value.
 */
function orNull({ type, anyOf, ...rest }: { [key: string]: Json }): { [key: string]: Json } {
  if (Array.isArray(anyOf)) return { ...rest, anyOf: [...anyOf, { type: 'null' }] }
  return { ...rest, type: [type as string, 'null'] }
}

/** The keys of `properties` are names, not keywords. A property may be called `default` or `title`. */
function eachOf(properties: Json | undefined): Json {
  return Object.fromEntries(Object.entries(properties ?? {}).map(([key, value]) => [key, asWritten(value)]))
}

/** Whether a key has a default. The key may then be missing in the file, because the default is filled in later. */
function hasDefault(properties: Json | undefined, key: string): boolean {
  const property = (properties as { [key: string]: Json } | undefined)?.[key]
  return typeof property === 'object' && property !== null && 'default' in property
}
