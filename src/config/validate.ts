// Validates a YAML source against a schema. Fills in defaults and reports values of the wrong shape.
import type { Schema } from '../schema/type.ts'
import { appendToPointer, type Diagnostic, unescapeKey } from './diagnostics.ts'
import { checkShape, type ShapeError } from './sections/shape.ts'
import { bestBranches, pointerOf, suggestedKey, toDiagnostic } from './validation-messages.ts'
import type { YamlSource } from './yaml/yaml-source.ts'

export interface Validation {
  readonly diagnostics: readonly Diagnostic[]
  /** Whether the value at this JSON Pointer and everything below it are valid. */
  isValid(pointer: string): boolean
}

/**
 * Validates `yaml.value`. Also changes it: fills in defaults, and converts interpolated texts to numbers and booleans.
 */
export function validate(schema: Schema, yaml: YamlSource): Validation {
  const errorsNow = () => withMisnamed(checkShape(schema, yaml.value))
  const errors = errorsNow()
  const coercible = [...withBranches(errors)].filter(error => coerce(yaml, error))
  return toValidation(yaml, bestBranches(coercible.length > 0 ? errorsNow() : errors))
}

/** Adds the errors inside entries with an invalid name, for example inside an upstream whose name contains a space. */
function withMisnamed(errors: readonly ShapeError[]): ShapeError[] {
  return errors.flatMap(error => {
    const { keyword, key, value, schema, pointer } = error
    const [named] = Object.values(schema.patternProperties ?? {})
    if (keyword !== 'additionalProperties' || key === undefined || named === undefined) return [error]
    return [
      error,
      ...checkShape(named, (value as Record<string, unknown>)[key], appendToPointer(pointer, key)),
    ]
  })
}

/** Yields all errors, including the errors of every branch of a union. After `coerce`, any of the branches may fit. */
function* withBranches(errors: readonly ShapeError[]): Generator<ShapeError> {
  for (const error of errors) {
    for (const branch of error.branches ?? []) yield* withBranches(branch)
    yield error
  }
}

function toValidation(yaml: YamlSource, errors: readonly ShapeError[]): Validation {
  // If the file also contains the suggested key, the unknown key is not a misspelling of the suggested key.
  const isMeant = (pointer: string | undefined) => pointer !== undefined && !yaml.locations.has(pointer)
  const suggested = new Set(errors.map(suggestedKey).filter(isMeant) as string[])
  const invalid = new Set<string>()
  for (const pointer of [...yaml.unknown, ...suggested]) markWithAncestors(invalid, pointer)
  const diagnostics: Diagnostic[] = []
  for (const error of errors) {
    const pointer = pointerOf(error)
    // A value that could not be read is already reported. If a required key is misspelled, only the misspelling is
    // reported, and not the missing key.
    if (yaml.unknown.has(pointer) || (error.keyword === 'required' && suggested.has(pointer))) continue
    markWithAncestors(invalid, pointer)
    diagnostics.push(toDiagnostic(yaml, error, pointer))
  }
  return { diagnostics, isValid: pointer => !invalid.has(pointer) }
}

function markWithAncestors(pointers: Set<string>, pointer: string): void {
  for (
    let pointerOrAncestor = pointer;
    pointerOrAncestor !== '' && !pointers.has(pointerOrAncestor);
    pointerOrAncestor = pointerOrAncestor.slice(0, pointerOrAncestor.lastIndexOf('/'))
  )
    pointers.add(pointerOrAncestor)
}

/**
 * Corrects three kinds of values. An interpolated text becomes a number or a boolean. A section without keys becomes an
 * empty section. A key without a value gets its empty default.
 */
function coerce(yaml: YamlSource, { keyword, schema, value, pointer }: ShapeError): boolean {
  if (keyword !== 'type' && keyword !== 'anyOf') return false
  const { type, default: byDefault } = schema
  if (value === null && (typeof byDefault === 'object' || byDefault === ''))
    return setAt(yaml, pointer, structuredClone(byDefault))
  if (typeof value !== 'string' || !yaml.interpolated.has(pointer)) return false
  if (type === 'integer' && /^[-+]?[0-9]+$/.test(value)) return setAt(yaml, pointer, Number(value))
  if (type === 'boolean' && /^(true|false)$/.test(value)) return setAt(yaml, pointer, value === 'true')
  return false
}

function setAt(yaml: YamlSource, pointer: string, value: unknown): boolean {
  const keys = pointer.split('/').slice(1)
  const last = keys.pop()
  if (last === undefined) return false
  const read = (holder: unknown, key: string) => (holder as Record<string, unknown>)[unescapeKey(key)]
  const parent = keys.reduce(read, yaml.value) as Record<string, unknown>
  parent[unescapeKey(last)] = value
  return true
}
