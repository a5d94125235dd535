// Turns each shape error into one message. Its position is the place where the author can fix the error.
import type { Schema } from '../schema/type.ts'
import { appendToPointer, type Diagnostic, joinPath } from './diagnostics.ts'
import { nearest } from './did-you-mean.ts'
import { type FormatName, formatError } from './formats/formats.ts'
import { nameNouns } from './sections/builders.ts'
import { checkShape, type ShapeError } from './sections/shape.ts'
import type { SourceLocation, YamlSource } from './yaml/yaml-source.ts'

/** Returns the JSON Pointer of the unknown or missing key. For all other errors, this is the pointer of the value. */
export function pointerOf({ key, pointer }: ShapeError): string {
  return key === undefined ? pointer : appendToPointer(pointer, key)
}

export function suggestedKey(error: ShapeError): string | undefined {
  const near = error.keyword === 'additionalProperties' ? nearestKey(error) : undefined
  return near === undefined ? undefined : appendToPointer(error.pointer, near)
}

/**
 * Replaces the error of each union with the errors of the branch that the author probably meant. If the value has the
 * wrong type for every branch, the error of the union stays.
 */
export function bestBranches(errors: readonly ShapeError[]): ShapeError[] {
  return errors.flatMap(union => {
    const [best] = (union.branches ?? [])
      .filter(branch => !branch.some(error => error.pointer === union.pointer && isTypeError(error)))
      .sort((a, b) => a.length - b.length)
    return best === undefined ? [union] : bestBranches(best)
  })
}

const isTypeError = ({ keyword }: ShapeError) => keyword === 'type' || keyword === 'const'

export function toDiagnostic(yaml: YamlSource, error: ShapeError, pointer: string): Diagnostic {
  const { keyword, key = '', schema } = error
  const location = locationOf(yaml, error.pointer)
  if (keyword === 'additionalProperties') {
    const unknown = locationOf(yaml, pointer)
    return { offset: unknown.key ?? unknown.value, path: unknown.path, message: unknownKey(error) }
  }
  if (keyword === 'required') {
    const wanted = nounOf(schema.properties?.[key])
    const path = joinPath(location.path, key)
    return { offset: location.key ?? location.value, path, message: `is required: ${wanted}` }
  }
  return { offset: location.value, path: location.path, message: sentence(error) }
}

function sentence(error: ShapeError): string {
  const { keyword, schema, value } = error
  if (keyword === 'format') return formatError(schema.format as FormatName, String(value)) ?? ''
  if (keyword === 'minimum') return `must be at least ${schema.minimum}`
  if (keyword === 'maximum') return `must be at most ${schema.maximum}`
  if (keyword === 'enum') {
    const allowed = (schema.enum ?? []).map(String)
    return `must be ${list(allowed)}${typeof value === 'string' ? didYouMean(value, allowed) : ''}`
  }
  if (schema.type === 'object' && typeof value === 'string') {
    return `must be ${nounOf(schema)}; write each key as key: value, with a space after the colon`
  }
  const asText = schemaOfText(error)
  return asText === undefined ? `must be ${nounOf(schema)}` : `must be ${nounOf(asText)}, in quotes`
}

/**
 * Finds a text schema that accepts the number or boolean if it is written in quotes. For example, a token that consists
 * of digits needs quotes.
 */
function schemaOfText({ schema, value }: ShapeError): Schema | undefined {
  if (typeof value !== 'number' && typeof value !== 'boolean') return undefined
  return [schema, ...(schema.anyOf ?? [])].find(
    one => one.type === 'string' && checkShape(one, String(value)).length === 0,
  )
}

function unknownKey(error: ShapeError): string {
  const { properties = {}, patternProperties = {} } = error.schema
  const [pattern] = Object.keys(patternProperties)
  if (pattern !== undefined) return `must be ${nameNouns[pattern]}`
  const near = nearestKey(error)
  if (near === undefined) return unknownAmong(properties)
  return `unknown key; did you mean ${near}${isPartOfListen(error) ? ' (HOST:PORT)' : ''}?`
}

/** Builds the message once per section, because a section may have a hundred thousand unknown keys. */
function unknownAmong(properties: object): string {
  const message =
    unknownKeys.get(properties) ?? `unknown key; valid keys: ${Object.keys(properties).join(', ')}`
  unknownKeys.set(properties, message)
  return message
}

const unknownKeys = new WeakMap<object, string>()

function nearestKey(error: ShapeError): string | undefined {
  const { key = '', schema } = error
  return isPartOfListen(error) ? 'listen' : nearest(key, Object.keys(schema.properties ?? {}))
}

/** Returns whether the unknown key is a part of `listen`, for example `port`. Many other programs have this key. */
function isPartOfListen({ key = '', schema: { properties = {} } }: ShapeError): boolean {
  return Object.hasOwn(properties, 'listen') && /^(port|host|hostname|address|addr|bind|ip)$/i.test(key)
}

function didYouMean(text: string, known: readonly string[]): string {
  const near = nearest(text, known)
  return near === undefined ? '' : `; did you mean ${near}?`
}

/** Returns a noun that completes "must be …" and "is required: …". */
function nounOf(schema: Schema | undefined): string {
  if (schema?.title !== undefined) return schema.title
  if (schema?.enum !== undefined) return list(schema.enum.map(String))
  const nouns: Record<string, string> = {
    object: 'a mapping of keys',
    array: 'a list',
    integer: 'a whole number',
    boolean: 'true or false',
  }
  return nouns[schema?.type ?? ''] ?? 'text'
}

/** Returns the location of a value. A default value is not in the file, so its nearest ancestor is located instead. */
function locationOf(yaml: YamlSource, pointer: string): SourceLocation {
  const location = yaml.locations.get(pointer)
  if (location !== undefined) return location
  if (pointer === '') return { path: '', key: undefined, value: 0 }
  return locationOf(yaml, pointer.slice(0, pointer.lastIndexOf('/')))
}

function list(words: readonly string[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
