// The running configuration as operators may see it: every value with its line, and no secret (CONTRACT §13).
import type { Schema } from '../schema/type.ts'
import { appendToPointer, joinPath, type ListedProblem, type Position, type Problems } from './diagnostics.ts'
import { operatorRoles } from './sections/admin.ts'
import { NAME_PATTERN } from './sections/builders.ts'
import { schema } from './sections/schema.ts'
import type { YamlSource } from './yaml/yaml-source.ts'

export interface ListedValue {
  /** `server.listen`, `routes[0].path`. */
  readonly path: string
  /** As it stands in the file, with `${…}` filled in; `***` in the place of a secret that is set. */
  readonly value: unknown
  /** Null for a default. */
  readonly line: number | null
}

/** The values as JSON: a worker thread posts one text in less time than many objects. */
export type Listing = string

const mask = '***'

/** @param yaml whose defaults are filled in @param lineOf of a value in the file, by JSON Pointer */
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
 * What is wrong with a file, without any value that is secret, nor any key that is neither known nor a declared name: it
 * may be a secret in the wrong place.
 * @param yaml undefined where the file could not be read as YAML: then nothing of it is repeated anyway
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

/** Calls back with each value that has none inside it. */
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
  'smtp',
  'postgres',
  'postgres_listen',
  'redis',
])

function isSecret(yaml: YamlSource, value: unknown, pointer: string, keys: Place['keys']): boolean {
  // The value says that nothing is set, which operators must see.
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

/** The name of an upstream or of an operator: an operator's own word, and no key. */
function isDeclaredName(keys: Place['keys'], depth: number): boolean {
  const isNamed =
    (depth === 1 && keys[0] === 'upstreams') || (depth === 2 && keys[0] === 'admin' && keys[1] === 'tokens')
  // What no name can be may be a token in the place of its name.
  return isNamed && namePattern.test(String(keys[depth]))
}

const namePattern = new RegExp(NAME_PATTERN, 'u')

/** Of `headers.request.set` and `headers.response.set`. */
function isHeaderValue(keys: Place['keys']): boolean {
  return keys.at(-2) === 'set' && keys.at(-4) === 'headers'
}

function isSecretField(name: string): boolean {
  return /^(proxy-)?authorization$|cookie|key|token|secret|password/i.test(name)
}

/** The longest first: one may have another in it. Shorter ones are in any sentence. */
function hiddenTexts(yaml: YamlSource): string[] {
  const texts = new Set<string>()
  visit(yaml.value, (value, { pointer, keys }) => {
    const unknownKeys = keys.filter((_, depth) => !isKnownKey(keys, depth))
    for (const key of unknownKeys) texts.add(String(key))
    // `true`, `null` and `{}` are no secrets, and stand in any sentence.
    const mayTell = (typeof value === 'string' || typeof value === 'number') && !isRole(value, keys)
    if (mayTell && (unknownKeys.length > 0 || isSecret(yaml, value, pointer, keys))) texts.add(String(value))
  })
  return [...texts].filter(text => text.length >= 4).sort((a, b) => b.length - a.length)
}

/** A role stands beside a secret and is none: without it no sentence could say that a file cannot be read. */
function isRole(value: unknown, keys: Place['keys']): boolean {
  return keys.at(-1) === 'may' && operatorRoles.some(role => role === value)
}

function isKnownKey(keys: Place['keys'], depth: number): boolean {
  const key = keys[depth]
  return typeof key === 'number' || knownKeys.has(key as string) || isDeclaredName(keys, depth)
}

/** Takes a path apart as `joinPath` made it. */
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

/** Of every section. */
const knownKeys = new Set(keysOf(schema))

function* keysOf({ properties = {}, patternProperties = {}, items, anyOf = [] }: Schema): Generator<string> {
  yield* Object.keys(properties)
  const inner = [...Object.values(properties), ...Object.values(patternProperties), ...anyOf]
  for (const part of items === undefined ? inner : [...inner, items]) yield* keysOf(part)
}
