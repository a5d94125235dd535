// Turns ajv's errors into one sentence each, at the place where it can be fixed.
import type { AnySchemaObject, ErrorObject } from 'ajv/dist/2020.js'
import { appendToPointer, type Diagnostic, joinPath } from './diagnostics.ts'
import { nearest } from './did-you-mean.ts'
import { type FormatName, formatError } from './formats/formats.ts'
import type { SourceLocation, YamlSource } from './yaml/yaml-source.ts'

/** The JSON Pointer of the error: the unknown or missing key itself, else the value. */
export function pointerOf({ keyword, params, instancePath }: ErrorObject): string {
  if (keyword === 'additionalProperties') return appendToPointer(instancePath, params.additionalProperty)
  if (keyword === 'required') return appendToPointer(instancePath, params.missingProperty)
  return instancePath
}

/** The pointer of the known key that an unknown one was probably meant to be. */
export function suggestedKey(error: ErrorObject): string | undefined {
  const near = error.keyword === 'additionalProperties' ? nearestKey(error) : undefined
  return near === undefined ? undefined : appendToPointer(error.instancePath, near)
}

/** Keeps of each union only the errors of the branch that was probably meant; if none is near, the union's own. */
export function bestBranches(errors: readonly ErrorObject[]): ErrorObject[] {
  const dropped = new Set<ErrorObject>()
  for (const [index, union] of errors.entries()) {
    if (union.keyword !== 'anyOf') continue
    const branches = branchesOf(union, errors, index)
    const [best] = branches
      .filter(
        branch => !branch.some(error => error.instancePath === union.instancePath && isTypeError(error)),
      )
      .sort((a, b) => a.length - b.length)
    if (best !== undefined) dropped.add(union)
    for (const branch of branches) {
      if (branch !== best) for (const error of branch) dropped.add(error)
    }
  }
  return errors.filter(error => !dropped.has(error))
}

export function toDiagnostic(yaml: YamlSource, error: ErrorObject, pointer: string): Diagnostic {
  const { keyword, params, instancePath } = error
  const location = locationOf(yaml, instancePath)
  if (keyword === 'additionalProperties') {
    const unknown = locationOf(yaml, pointer)
    return { offset: unknown.key ?? unknown.value, path: unknown.path, message: unknownKey(error) }
  }
  if (keyword === 'required') {
    const wanted = nounOf(error.parentSchema?.properties?.[params.missingProperty])
    const path = joinPath(location.path, params.missingProperty)
    return { offset: location.key ?? location.value, path, message: `is required: ${wanted}` }
  }
  return { offset: location.value, path: location.path, message: sentence(error) }
}

function sentence({ keyword, params, data, parentSchema }: ErrorObject): string {
  if (keyword === 'format') return formatError(params.format as FormatName, String(data)) ?? ''
  if (keyword === 'minimum') return `must be at least ${params.limit}`
  if (keyword === 'maximum') return `must be at most ${params.limit}`
  if (keyword === 'enum') {
    const suggestion = typeof data === 'string' ? didYouMean(data, params.allowedValues) : ''
    return `must be ${list(params.allowedValues)}${suggestion}`
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

/** Built once per section: it may have a hundred thousand unknown keys. */
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

/** Completes "must be …" and "is required: …". */
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

/** A union's errors by branch. ajv lists them right before the union's own error, at the same value or below. */
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

/** The branch expects a value of another kind. */
const isTypeError = ({ keyword }: ErrorObject) => keyword === 'type' || keyword === 'const'

/** A value filled in by default is not in the file: its nearest ancestor's location stands for it. */
function locationOf(yaml: YamlSource, pointer: string): SourceLocation {
  const location = yaml.locations.get(pointer)
  if (location !== undefined) return location
  if (pointer === '') return { path: '', key: undefined, value: 0 }
  return locationOf(yaml, pointer.slice(0, pointer.lastIndexOf('/')))
}

function list(words: readonly string[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
