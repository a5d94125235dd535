// Validates a YAML source against a schema: fills in the defaults and reports values of the wrong shape.
import { Ajv2020, type AnySchemaObject, type ErrorObject } from 'ajv/dist/2020.js'
import { appendToPointer, type Diagnostic, unescapeKey } from './diagnostics.ts'
import { type FormatName, formatError, formats } from './formats/formats.ts'
import { bestBranches, pointerOf, suggestedKey, toDiagnostic } from './validation-messages.ts'
import type { YamlSource } from './yaml/yaml-source.ts'

export interface Validation {
  readonly diagnostics: readonly Diagnostic[]
  /** Whether nothing is wrong at this JSON Pointer or below it. */
  isValid(pointer: string): boolean
}

const ajv = new Ajv2020({ allErrors: true, useDefaults: true, verbose: true })
for (const name of Object.keys(formats) as FormatName[]) {
  ajv.addFormat(name, text => formatError(name, text) === undefined)
}
/** Changes the source's value: fills in defaults, and turns interpolated text into the number or boolean it means. */
type Validator = (yaml: YamlSource) => Validation

export function createValidator(schema: AnySchemaObject): Validator {
  const validate = ajv.compile(schema)
  return yaml => {
    const errorsNow = () => (validate(yaml.value) ? [] : withMisnamed(validate.errors ?? []))
    const errors = errorsNow()
    const coercible = errors.filter(error => coerce(yaml, error))
    return toValidation(yaml, bestBranches(coercible.length > 0 ? errorsNow() : errors))
  }
}

/** Adds the errors below an invalid name: an upstream under a bad name is validated all the same. */
function withMisnamed(errors: readonly ErrorObject[]): ErrorObject[] {
  return errors.flatMap(error => {
    const { keyword, params, data, parentSchema, instancePath } = error
    const [named] = Object.values<AnySchemaObject>(parentSchema?.patternProperties ?? {})
    if (keyword !== 'additionalProperties' || named === undefined) return [error]
    const name: string = params.additionalProperty
    const validate = ajv.compile(named)
    if (validate((data as Record<string, unknown>)[name])) return [error]
    const below = (validate.errors ?? []).map(inner => ({
      ...inner,
      instancePath: appendToPointer(instancePath, name) + inner.instancePath,
    }))
    return [error, ...below]
  })
}

function toValidation(yaml: YamlSource, errors: readonly ErrorObject[]): Validation {
  // A key that also stands under its right name is not what the unknown key was meant to be.
  const isMeant = (pointer: string | undefined) => pointer !== undefined && !yaml.locations.has(pointer)
  const suggested = new Set(errors.map(suggestedKey).filter(isMeant) as string[])
  const invalid = new Set<string>()
  for (const pointer of [...yaml.unknown, ...suggested]) markWithAncestors(invalid, pointer)
  const diagnostics: Diagnostic[] = []
  for (const error of errors) {
    const pointer = pointerOf(error)
    // A value that could not be read is already reported; a required key under a misspelt name is one error, not two.
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

/** `${…}` may stand for a number or a boolean, and a section whose keys are all commented out is an empty one. */
function coerce(yaml: YamlSource, error: ErrorObject): boolean {
  const { keyword, params, data, instancePath: pointer } = error
  if (keyword !== 'type') return false
  const byDefault: unknown = error.parentSchema?.default
  if (data === null && typeof byDefault === 'object') return setAt(yaml, pointer, structuredClone(byDefault))
  if (typeof data !== 'string' || !yaml.interpolated.has(pointer)) return false
  if (params.type === 'integer' && /^[-+]?[0-9]+$/.test(data)) return setAt(yaml, pointer, Number(data))
  if (params.type === 'boolean' && /^(true|false)$/.test(data)) return setAt(yaml, pointer, data === 'true')
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
