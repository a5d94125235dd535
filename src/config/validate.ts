// Holds a sheet against the schema: fills in the defaults and finds what has the wrong shape.
import { Ajv2020, type AnySchemaObject, type ErrorObject } from 'ajv/dist/2020.js'
import type { Fault } from './diagnostics.ts'
import { type FormatName, faultOf, formats } from './formats/formats.ts'
import { pointTo, readKey } from './pointer.ts'
import { faultFrom, meantKey, nearestBranches, pointerOf } from './validation-messages.ts'
import type { Sheet } from './yaml/yaml-source.ts'

export interface Shape {
  readonly faults: readonly Fault[]
  /** Nothing is wrong at this JSON Pointer or below it. */
  sound(pointer: string): boolean
}

const ajv = new Ajv2020({ allErrors: true, useDefaults: true, verbose: true })
for (const name of Object.keys(formats) as FormatName[]) {
  ajv.addFormat(name, text => faultOf(name, text) === undefined)
}
/** Changes the sheet's value: defaults are filled in, and what was interpolated becomes the number it stands for. */
export type CheckShape = (sheet: Sheet) => Shape

export function shapeChecker(schema: AnySchemaObject): CheckShape {
  const validate = ajv.compile(schema)
  return sheet => {
    const errorsNow = () => (validate(sheet.value) ? [] : withMisnamed(validate.errors ?? []))
    const errors = errorsNow()
    const mendable = errors.filter(error => mend(sheet, error))
    return shapeOf(sheet, nearestBranches(mendable.length > 0 ? errorsNow() : errors))
  }
}

/** With what is wrong below a name that may not be one: an upstream under a bad name is an upstream all the same. */
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
      instancePath: pointTo(instancePath, name) + inner.instancePath,
    }))
    return [error, ...below]
  })
}

function shapeOf(sheet: Sheet, errors: readonly ErrorObject[]): Shape {
  // What stands under its right name too is not what was misspelt.
  const isMeant = (pointer: string | undefined) => pointer !== undefined && !sheet.places.has(pointer)
  const meant = new Set(errors.map(meantKey).filter(isMeant) as string[])
  const unsound = new Set<string>()
  for (const pointer of [...sheet.unknown, ...meant]) markUpwards(unsound, pointer)
  const faults: Fault[] = []
  for (const error of errors) {
    const pointer = pointerOf(error)
    // What could not be made out was reported already; a required key under a misspelt name is one fault, not two.
    if (sheet.unknown.has(pointer) || (error.keyword === 'required' && meant.has(pointer))) continue
    markUpwards(unsound, pointer)
    faults.push(faultFrom(sheet, error, pointer))
  }
  return { faults, sound: pointer => !unsound.has(pointer) }
}

function markUpwards(pointers: Set<string>, pointer: string): void {
  for (let at = pointer; at !== '' && !pointers.has(at); at = at.slice(0, at.lastIndexOf('/')))
    pointers.add(at)
}

/** `${…}` may stand for a number or a boolean, and a section whose keys are all commented out is an empty one. */
function mend(sheet: Sheet, error: ErrorObject): boolean {
  const { keyword, params, data, instancePath: pointer } = error
  if (keyword !== 'type') return false
  const byDefault: unknown = error.parentSchema?.default
  if (data === null && typeof byDefault === 'object') return put(sheet, pointer, structuredClone(byDefault))
  if (typeof data !== 'string' || !sheet.interpolated.has(pointer)) return false
  if (params.type === 'integer' && /^[-+]?[0-9]+$/.test(data)) return put(sheet, pointer, Number(data))
  if (params.type === 'boolean' && /^(true|false)$/.test(data)) return put(sheet, pointer, data === 'true')
  return false
}

function put(sheet: Sheet, pointer: string, value: unknown): boolean {
  const keys = pointer.split('/').slice(1)
  const last = keys.pop()
  if (last === undefined) return false
  const read = (holder: unknown, key: string) => (holder as Record<string, unknown>)[readKey(key)]
  const parent = keys.reduce(read, sheet.value) as Record<string, unknown>
  parent[readKey(last)] = value
  return true
}
