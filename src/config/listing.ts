// Lists the values of the running configuration with their lines, for operators. Secrets are masked.
import type { Schema } from '../schema/type.ts'
import { appendToPointer, joinPath, type ListedProblem, type Position, type Problems } from './diagnostics.ts'
import { operatorRoles } from './sections/admin.ts'
import { isOwnName, NAME_PATTERN } from './sections/builders.ts'
import { schema } from './sections/schema.ts'
import type { YamlSource } from './yaml/yaml-source.ts'

export interface ListedValue {
  /** The path of the key, for example `server.listen` or `routes[0].path`. */
  readonly path: string
  /** The value with `${…}` filled in, or `***` for a secret that is set. */
  readonly value: unknown
  /** The line in the file. Null for a default. */
  readonly line: number | null
}

/** The values as JSON text. A worker thread posts one text faster than many objects. */
export type Listing = string

const mask = '***'

/** @param yaml the file with its defaults filled in */
export function listValues(yaml: YamlSource, lineOf: (pointer: string) => Position): Listing {
  const listed: ListedValue[] = []
  visit(yaml.value, (value, { pointer, path, keys }) => {
    const line = yaml.locations.has(pointer) ? lineOf(pointer).line : null
    listed.push({ path, value: isSecret(yaml, value, pointer, keys) ? mask : value, line })
  })
  return JSON.stringify(listed)
}

export function parseListing(listing: Listing): ListedValue[] {
  return JSON.parse(listing)
}

/**
 * Hides secret values. Also hides unknown keys, because an unknown key may contain a misplaced secret.
 * @param yaml the parsed file; undefined if the file could not be read or parsed. In that case, the messages stay
 * unchanged, because they never quote the file.
 */
export function maskProblems({ problems }: Problems, yaml?: YamlSource): ListedProblem[] {
  const hidden = yaml === undefined ? [] : hiddenTexts(yaml)
  return problems.map(({ line, column, path, message }) => {
    const text = hidden.reduce((masked, secret) => masked.replaceAll(secret, mask), message)
    return { line, column, path: maskPath(path), text }
  })
}

interface Place {
  readonly pointer: string
  readonly path: string
  readonly keys: readonly (string | number)[]
}

/** Calls `found` for each scalar, and for each empty list or mapping. */
function visit(value: unknown, found: (value: unknown, place: Place) => void, place = root): void {
  const inner: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : typeof value === 'object' && value !== null
      ? Object.entries(value)
      : []
  if (inner.length === 0) {
    if (value !== undefined && place !== root) found(value, place)
    return
  }
  for (const [key, part] of inner) {
    visit(part, found, {
      pointer: appendToPointer(place.pointer, key),
      path: joinPath(place.path, key),
      keys: [...place.keys, key],
    })
  }
}

const root: Place = { pointer: '', path: '', keys: [] }

const secretKeys = new Set<unknown>([
  'token',
  'tokens',
  'key_secret',
  'key_secret_old',
  'secret',
  'client_secret',
  'smtp',
  'postgres',
  'postgres_listen',
  'redis',
])

function isSecret(yaml: YamlSource, value: unknown, pointer: string, keys: Place['keys']): boolean {
  // An empty value is shown, so that operators see that nothing is set.
  if (value === '' || (typeof value === 'object' && isEmpty(value))) return false
  if (pointer === '/auth/remember/tokens' && typeof value === 'number') return false
  if (keys.some((key, depth) => secretKeys.has(key) && !isDeclaredName(keys, depth))) return true
  if (yaml.fromFile.has(pointer)) return true
  if (typeof value === 'string' && /:\/\/[^\s/?#]*@/.test(value)) return true
  return isHeaderValue(keys) && (yaml.interpolated.has(pointer) || isSecretField(String(keys.at(-1))))
}

function isEmpty(value: object | null): boolean {
  return value === null || Object.keys(value).length === 0
}

/**
 * Whether the key is the name of an upstream, an operator, a quota or a provider. The author of the file chose this
 * name.
 */
function isDeclaredName(keys: Place['keys'], depth: number): boolean {
  const isNamed =
    (depth === 1 && keys[0] === 'upstreams') || (depth === 2 && keys[0] === 'admin' && keys[1] === 'tokens')
  const isQuota = depth === 3 && keys[0] === 'plans' && keys[2] === 'quotas'
  const isProvider = depth === 2 && keys[0] === 'auth' && keys[1] === 'providers'
  // A text that does not match the pattern of names may be a token that was written in the wrong place.
  return (
    (isNamed && namePattern.test(String(keys[depth]))) ||
    ((isQuota || isProvider) && isOwnName(String(keys[depth])))
  )
}

const namePattern = new RegExp(NAME_PATTERN, 'u')

function isHeaderValue(keys: Place['keys']): boolean {
  return keys.at(-2) === 'set' && keys.at(-4) === 'headers'
}

function isSecretField(name: string): boolean {
  return /^(proxy-)?authorization$|cookie|key|token|secret|password/i.test(name)
}

/**
 * Returns the texts to mask. The longest text is first, because it may contain a shorter one. Texts of fewer than 4
 * characters are not masked, because they occur in many messages.
 */
function hiddenTexts(yaml: YamlSource): string[] {
  const texts = new Set<string>()
  visit(yaml.value, (value, { pointer, keys }) => {
    const unknownKeys = keys.filter((_, depth) => !isKnownKey(keys, depth))
    for (const key of unknownKeys) texts.add(String(key))
    // `true`, `null` and `{}` are not secrets, and they occur in many messages.
    const mayBeSecret = (typeof value === 'string' || typeof value === 'number') && !isRole(value, keys)
    if (mayBeSecret && (unknownKeys.length > 0 || isSecret(yaml, value, pointer, keys)))
      texts.add(String(value))
  })
  return [...texts].filter(text => text.length >= 4).sort((a, b) => b.length - a.length)
}

/**
 * Whether the value is the role of an admin token. A role is not secret. Masking it would remove words such as "read"
 * from messages.
 */
function isRole(value: unknown, keys: Place['keys']): boolean {
  return keys.at(-1) === 'may' && operatorRoles.some(role => role === value)
}

function isKnownKey(keys: Place['keys'], depth: number): boolean {
  const key = keys[depth]
  return typeof key === 'number' || knownKeys.has(key as string) || isDeclaredName(keys, depth)
}

function maskPath(path: string): string {
  const keys: (string | number)[] = []
  for (const [, quoted, index, key] of path.matchAll(
    /\[("(?:[^"\\]|\\.)*")\]|\[(\d+)\]|\.?([A-Za-z_$][\w$-]*)/g,
  ))
    keys.push(quoted !== undefined ? JSON.parse(quoted) : index !== undefined ? Number(index) : (key ?? ''))
  return keys.reduce<string>(
    (masked, key, depth) =>
      isKnownKey(keys, depth) ? joinPath(masked, key) : masked === '' ? '?' : `${masked}.?`,
    '',
  )
}

const knownKeys = new Set(keysOf(schema))

function* keysOf({ properties = {}, patternProperties = {}, items, anyOf = [] }: Schema): Generator<string> {
  yield* Object.keys(properties)
  const inner = [...Object.values(properties), ...Object.values(patternProperties), ...anyOf]
  for (const part of items === undefined ? inner : [...inner, items]) yield* keysOf(part)
}
