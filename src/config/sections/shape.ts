// Checks whether a value matches a schema, and decodes it. Supports only the keywords that the configuration uses. Used
// instead of ajv, which compiles the schema too slowly for startup. A test compares the results with ajv.
import { converterOf, decoderOf, type Keywords, type Schema } from '../../schema/type.ts'
import { appendToPointer } from '../diagnostics.ts'
import { type FormatName, formatError } from '../formats/formats.ts'

export interface ShapeError {
  readonly keyword: keyof Keywords
  /** The schema that contains the keyword. */
  readonly schema: Schema
  readonly value: unknown
  /** JSON Pointer of the value. */
  readonly pointer: string
  /** The key that is missing (for `required`) or unknown (for `additionalProperties`). */
  readonly key?: string
  /** The errors of each branch, for `anyOf`. */
  readonly branches?: readonly (readonly ShapeError[])[]
}

/**
 * Returns the errors of a value, and fills in the defaults of missing keys. Inside a union, no defaults are filled in,
 * because each branch would add its own defaults.
 */
export function checkShape(schema: Schema, value: unknown, pointer = '', fillsIn = true): ShapeError[] {
  const errors: ShapeError[] = []
  const report = (keyword: keyof Keywords, more?: Pick<ShapeError, 'key' | 'branches'>) =>
    errors.push({ keyword, schema, value, pointer, ...more })
  if (schema.type !== undefined && !types[schema.type](value)) report('type')
  // Each of these keywords applies to values of one type and ignores all other values.
  if (typeof value === 'string') {
    if (schema.minLength !== undefined && [...value].length < schema.minLength) report('minLength')
    if (schema.pattern !== undefined && !matches(schema.pattern, value)) report('pattern')
    if (schema.format !== undefined && formatError(schema.format as FormatName, value) !== undefined)
      report('format')
  } else if (typeof value === 'number' && Number.isFinite(value)) {
    if (schema.maximum !== undefined && value > schema.maximum) report('maximum')
    if (schema.minimum !== undefined && value < schema.minimum) report('minimum')
  } else if (Array.isArray(value)) {
    const { items, minItems = 0, maxItems = value.length } = schema
    if (value.length < minItems) report('minItems')
    if (value.length > maxItems) report('maxItems')
    for (const [index, item] of value.entries()) if (items !== undefined) checkPart(items, item, index)
  } else if (isMapping(value)) checkMapping(value)
  if (schema.const !== undefined && value !== schema.const) report('const')
  if (schema.enum !== undefined && !schema.enum.includes(value)) report('enum')
  const branches = schema.anyOf?.map(branch => checkShape(branch, value, pointer, false))
  if (branches?.every(those => those.length > 0)) report('anyOf', { branches })
  return errors

  function checkPart(part: Schema, inner: unknown, key: string | number): void {
    // The errors are not spread into one `push` call, because a file may have more errors than a call may have
    // arguments.
    for (const error of checkShape(part, inner, appendToPointer(pointer, key), fillsIn)) errors.push(error)
  }

  function checkMapping(mapping: Mapping): void {
    const { properties = {}, patternProperties, required = [], minProperties = 0 } = schema
    for (const [key, { default: byDefault }] of Object.entries(fillsIn ? properties : {})) {
      if (byDefault !== undefined && mapping[key] === undefined) mapping[key] = structuredClone(byDefault)
    }
    if (Object.keys(mapping).length < minProperties) report('minProperties')
    for (const key of required) if (mapping[key] === undefined) report('required', { key })
    for (const key of Object.keys(mapping)) {
      if (schema.additionalProperties === false && schemaOf(schema, key) === undefined)
        report('additionalProperties', { key })
    }
    // The keys are checked in the order of the schema.
    const named = Object.keys(properties).filter(key => mapping[key] !== undefined)
    const keys = patternProperties === undefined ? named : Object.keys(mapping)
    for (const key of keys) {
      const part = schemaOf(schema, key)
      if (part !== undefined) checkPart(part, mapping[key], key)
    }
  }
}

/** Returns the decoded value. The given value is not changed. @param value a value that matches the schema */
export function decode<Decoded>(schema: Schema<unknown, Decoded>, value: unknown): Decoded {
  return decodeAny(schema, value) as Decoded
}

function decodeAny(schema: Schema, value: unknown): unknown {
  const decoded = decodeWritten(schema, value)
  const convert = converterOf(schema)
  return convert === undefined ? decoded : convert(decoded as never)
}

function decodeWritten(schema: Schema, value: unknown): unknown {
  const decodeOwn = decoderOf(schema)
  if (decodeOwn !== undefined) return decodeOwn(value)
  const branch = schema.anyOf?.find(one => checkShape(one, value, '', false).length === 0)
  if (branch !== undefined) return decodeAny(branch, value)
  const { items } = schema
  if (Array.isArray(value)) return items === undefined ? value : value.map(item => decodeAny(items, item))
  if (!isMapping(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const part = schemaOf(schema, key)
      return [key, part === undefined ? inner : decodeAny(part, inner)]
    }),
  )
}

type Mapping = Record<string, unknown>

/** Returns whether a value is a mapping, and not a list or null. */
export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const types: Readonly<Record<NonNullable<Keywords['type']>, (value: unknown) => boolean>> = {
  object: isMapping,
  array: Array.isArray,
  string: value => typeof value === 'string',
  integer: Number.isInteger,
  number: Number.isFinite,
  boolean: value => typeof value === 'boolean',
  null: value => value === null,
}

function schemaOf({ properties = {}, patternProperties }: Schema, key: string): Schema | undefined {
  if (Object.hasOwn(properties, key)) return properties[key]
  if (patternProperties === undefined) return undefined
  return Object.entries(patternProperties).find(([pattern]) => matches(pattern, key))?.[1]
}

function matches(pattern: string, text: string): boolean {
  const compiled = patterns.get(pattern) ?? new RegExp(pattern, 'u')
  patterns.set(pattern, compiled)
  return compiled.test(text)
}

const patterns = new Map<string, RegExp>()
