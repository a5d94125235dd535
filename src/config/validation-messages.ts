// Turns what ajv reports into one sentence a fault, at the place where it can be mended.
import type { AnySchemaObject, ErrorObject } from 'ajv/dist/2020.js'
import { type Fault, joinPath } from './diagnostics.ts'
import { nearest } from './did-you-mean.ts'
import { type FormatName, faultOf } from './formats/formats.ts'
import { pointTo } from './pointer.ts'
import type { Place, Sheet } from './yaml/yaml-source.ts'

/** The JSON Pointer of what is wrong: the unknown or missing key itself, else the value. */
export function pointerOf({ keyword, params, instancePath }: ErrorObject): string {
  if (keyword === 'additionalProperties') return pointTo(instancePath, params.additionalProperty)
  if (keyword === 'required') return pointTo(instancePath, params.missingProperty)
  return instancePath
}

/** The pointer of the known key that an unknown one was probably meant to be. */
export function meantKey(error: ErrorObject): string | undefined {
  const near = error.keyword === 'additionalProperties' ? nearestKey(error) : undefined
  return near === undefined ? undefined : pointTo(error.instancePath, near)
}

/** Of a union only the errors of the branch that was probably meant; the union's own where none comes near. */
export function nearestBranches(errors: readonly ErrorObject[]): ErrorObject[] {
  const dropped = new Set<ErrorObject>()
  for (const [index, union] of errors.entries()) {
    if (union.keyword !== 'anyOf') continue
    const branches = branchesOf(union, errors, index)
    const [meant] = branches
      .filter(branch => !branch.some(error => error.instancePath === union.instancePath && isOfKind(error)))
      .sort((a, b) => a.length - b.length)
    if (meant !== undefined) dropped.add(union)
    for (const branch of branches) {
      if (branch !== meant) for (const error of branch) dropped.add(error)
    }
  }
  return errors.filter(error => !dropped.has(error))
}

export function faultFrom(sheet: Sheet, error: ErrorObject, pointer: string): Fault {
  const { keyword, params, instancePath } = error
  const place = placeOf(sheet, instancePath)
  if (keyword === 'additionalProperties') {
    const unknown = placeOf(sheet, pointer)
    return { offset: unknown.key ?? unknown.value, path: unknown.path, message: unknownKey(error) }
  }
  if (keyword === 'required') {
    const wanted = nounOf(error.parentSchema?.properties?.[params.missingProperty])
    const path = joinPath(place.path, params.missingProperty)
    return { offset: place.key ?? place.value, path, message: `is required: ${wanted}` }
  }
  return { offset: place.value, path: place.path, message: sentence(error) }
}

function sentence({ keyword, params, data, parentSchema }: ErrorObject): string {
  if (keyword === 'format') return faultOf(params.format as FormatName, String(data)) ?? ''
  if (keyword === 'minimum') return `must be at least ${params.limit}`
  if (keyword === 'maximum') return `must be at most ${params.limit}`
  if (keyword === 'enum') {
    const meant = typeof data === 'string' ? didYouMean(data, params.allowedValues) : ''
    return `must be ${list(params.allowedValues)}${meant}`
  }
  const bare = typeof data === 'number' || typeof data === 'boolean'
  const quotes = bare && params.type === 'string' && parentSchema?.format === undefined
  return `must be ${nounOf(parentSchema)}${quotes ? ', in quotes' : ''}`
}

function unknownKey(error: ErrorObject): string {
  const { properties = {} } = error.parentSchema ?? {}
  if (Object.keys(properties).length === 0)
    return 'must be a name of letters, digits, _ . and - that begins with a letter or digit'
  const near = nearestKey(error)
  return near === undefined ? unknownAmong(properties) : `unknown key; did you mean ${near}?`
}

/** One text for all the unknown keys of a section: there may be a hundred thousand. */
function unknownAmong(properties: object): string {
  const said = unknownKeys.get(properties) ?? `unknown key; known here: ${Object.keys(properties).join(', ')}`
  unknownKeys.set(properties, said)
  return said
}

const unknownKeys = new WeakMap<object, string>()

function nearestKey({ params, parentSchema }: ErrorObject): string | undefined {
  return nearest(params.additionalProperty, Object.keys(parentSchema?.properties ?? {}))
}

function didYouMean(text: string, known: readonly string[]): string {
  const near = nearest(text, known)
  return near === undefined ? '' : `; did you mean ${near}?`
}

/** "must be …" and "is required: …" end with this. */
function nounOf(schema: AnySchemaObject | undefined): string {
  if (schema?.title !== undefined) return schema.title
  const nouns: Record<string, string> = {
    object: 'a mapping of keys',
    array: 'a list',
    integer: 'a whole number',
    boolean: 'true or false',
  }
  return nouns[schema?.type ?? ''] ?? 'text'
}

/** The errors under one union, a list for each of its branches: they stand right before its own, at the same value. */
function branchesOf(union: ErrorObject, errors: readonly ErrorObject[], index: number): ErrorObject[][] {
  const { instancePath: at, schemaPath } = union
  const isWithin = (error: ErrorObject | undefined): error is ErrorObject =>
    error !== undefined && (error.instancePath === at || error.instancePath.startsWith(`${at}/`))
  let from = index
  while (isWithin(errors[from - 1])) from -= 1
  const branches = new Map<string, ErrorObject[]>()
  for (const error of errors.slice(from, index)) {
    if (!error.schemaPath.startsWith(`${schemaPath}/`)) continue
    const branch = error.schemaPath.slice(schemaPath.length + 1).split('/', 1)[0] ?? ''
    const those = branches.get(branch)
    if (those === undefined) branches.set(branch, [error])
    else those.push(error)
  }
  return [...branches.values()]
}

/** The value is of another kind than the branch is about. */
const isOfKind = ({ keyword }: ErrorObject) => keyword === 'type' || keyword === 'const'

/** What was filled in by default stands nowhere: its nearest ancestor's place then. */
function placeOf(sheet: Sheet, pointer: string): Place {
  const place = sheet.places.get(pointer)
  if (place !== undefined) return place
  if (pointer === '') return { path: '', key: undefined, value: 0 }
  return placeOf(sheet, pointer.slice(0, pointer.lastIndexOf('/')))
}

function list(words: readonly string[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
