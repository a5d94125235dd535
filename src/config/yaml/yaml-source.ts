// Parses YAML into plain values and records the location of each value.
import {
  type Alias,
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import {
  appendToPointer,
  countWhile,
  type Diagnostic,
  joinPath,
  type Position,
  positionsIn,
} from '../diagnostics.ts'
import { maxFileBytes } from '../read-file.ts'
import type { InterpolationResult } from './interpolate.ts'
import { MAX_DEPTH, parseText, resolveAliases, syntaxDiagnostics, Unreadable } from './syntax.ts'

export interface SourceLocation {
  readonly path: string
  /** Offset of the key. `undefined` for the root and for list items, because they have no key. */
  readonly key: number | undefined
  readonly value: number
}

export interface YamlSource {
  /** Objects have no prototype, so that keys of the file cannot change `Object.prototype`. */
  readonly value: unknown
  readonly diagnostics: readonly Diagnostic[]
  /** The locations by JSON Pointer. */
  readonly locations: ReadonlyMap<string, SourceLocation>
  /** The environment variables that each interpolated scalar uses, by JSON Pointer. */
  readonly interpolated: ReadonlyMap<string, readonly string[]>
  /** JSON Pointers of the scalars that contain text from a `${file:}`. */
  readonly fromFile: ReadonlySet<string>
  /** JSON Pointers of values that could not be read. Each has a diagnostic already, so it needs no further ones. */
  readonly unknown: ReadonlySet<string>
}

export function diagnosticAt(yaml: YamlSource, pointer: string, message: string): Diagnostic {
  const { path = '', value: offset = 0 } = yaml.locations.get(pointer) ?? {}
  return { offset, path, message }
}

/** Creates a diagnostic about a value. Its position is the key of the value, if there is one. */
export function diagnosticAtKey(yaml: YamlSource, pointer: string, message: string): Diagnostic {
  const diagnostic = diagnosticAt(yaml, pointer, message)
  return { ...diagnostic, offset: yaml.locations.get(pointer)?.key ?? diagnostic.offset }
}

/** Returns a function that locates a value. A value that is not in the file has the position of the nearest parent. */
export function positionsOf({ locations }: YamlSource, text: string): (pointer: string) => Position {
  const positionOf = positionsIn(text)
  return pointer => {
    let location = locations.get(pointer)
    for (let above = pointer; location === undefined && above !== ''; location = locations.get(above)) {
      above = above.slice(0, above.lastIndexOf('/'))
    }
    return positionOf(location?.key ?? location?.value ?? 0)
  }
}

/** @param room the number of characters that may be inserted */
type Interpolate = (text: string, room: number) => InterpolationResult

/** Maximum number of values that come from aliases. More values indicate an attack on memory ("billion laughs"). */
const MAX_ALIASED_VALUES = 10_000

/** Maximum number of values. Even a file of the maximum size that contains only routes has fewer values. */
const MOST_VALUES = 500_000

export function parseYaml(text: string, interpolate: Interpolate): YamlSource | Diagnostic[] {
  try {
    const document = parseText(text)
    const { fatal, local } = syntaxDiagnostics(text, document)
    if (fatal !== undefined) return [...local.filter(({ offset }) => offset < fatal.offset), fatal]
    return new Reader(document, interpolate, local).read()
  } catch (error) {
    if (error instanceof Unreadable) return [error.diagnostic]
    throw error
  }
}

interface Entry {
  readonly key: string
  readonly offset: number
  readonly value: unknown
}

class Reader {
  readonly #document: Document
  readonly #interpolate: Interpolate
  readonly #parseDiagnostics: readonly Diagnostic[]
  readonly #diagnostics: Diagnostic[]
  readonly #aliasTargets: ReadonlyMap<Alias, Node>
  readonly #locations = new Map<string, SourceLocation>()
  readonly #interpolated = new Map<string, readonly string[]>()
  readonly #fromFile = new Set<string>()
  readonly #unknown = new Set<string>()
  /** Collections that are being read. An alias to one of them would recurse without end. */
  readonly #open = new Set<Node>()
  #aliasedValues = 0
  #room = maxFileBytes

  constructor(document: Document, interpolate: Interpolate, parseDiagnostics: readonly Diagnostic[]) {
    this.#document = document
    this.#aliasTargets = resolveAliases(document)
    this.#interpolate = interpolate
    this.#parseDiagnostics = parseDiagnostics
    this.#diagnostics = [...parseDiagnostics]
  }

  read(): YamlSource {
    const value = this.#value(this.#document.contents, '', { path: '', key: undefined, value: 0 }, false)
    return {
      value,
      diagnostics: this.#diagnostics,
      locations: this.#locations,
      interpolated: this.#interpolated,
      fromFile: this.#fromFile,
      unknown: this.#unknown,
    }
  }

  /**
   * Reads a value. An empty value gets the offset of its key.
   * @param parent the path and the key of the value; `parent.value` is the offset if neither value nor key has one
   */
  #value(node: unknown, pointer: string, parent: SourceLocation, isAliased: boolean): unknown {
    const range = isScalar(node) || isCollection(node) || isAlias(node) ? node.range : undefined
    const empty = range == null || range[0] === range[1]
    const location = { ...parent, value: empty ? (parent.key ?? range?.[0] ?? parent.value) : range[0] }
    if (this.#locations.size >= MOST_VALUES)
      throw new Unreadable(location.value, `has more than ${MOST_VALUES} values`)
    this.#locations.set(pointer, location)
    if (isAliased && this.#exceedsAliasLimit(location)) return this.#markUnknown(pointer)
    if (isAlias(node)) return this.#alias(node, pointer, location)
    if (isMap(node)) return this.#whileOpen(node, () => this.#map(node, pointer, location, isAliased))
    if (isSeq(node)) {
      return this.#whileOpen(node, () =>
        node.items.map((item, index) => {
          const inner = { path: joinPath(location.path, index), key: undefined, value: location.value }
          return this.#value(item, appendToPointer(pointer, index), inner, isAliased)
        }),
      )
    }
    return isScalar(node) ? this.#scalar(node, pointer, location) : null
  }

  #alias(alias: Alias, pointer: string, location: SourceLocation): unknown {
    const target = this.#aliasTargets.get(alias)
    if (target === undefined || this.#open.has(target)) {
      this.#report(location, unreadable(alias, target))
      return this.#markUnknown(pointer)
    }
    const value = this.#value(target, pointer, location, true)
    this.#locations.set(pointer, location)
    return value
  }

  #map(map: YAMLMap, pointer: string, location: SourceLocation, isAliased: boolean): unknown {
    const object: Record<string, unknown> = Object.create(null)
    const firstOffsets = new Map<string, number>()
    for (const { key, offset, value } of this.#entries(map, location)) {
      const inner = { path: joinPath(location.path, key), key: offset, value: offset }
      if (firstOffsets.has(key)) {
        this.#report(inner, 'is set twice in the same mapping; keep one', offset)
        continue
      }
      firstOffsets.set(key, offset)
      object[key] = this.#value(value, appendToPointer(pointer, key), inner, isAliased)
    }
    return object
  }

  /** Returns the entries of a mapping, followed by the entries that `<<` merges into it from other mappings. */
  #entries(map: YAMLMap, location: SourceLocation): Entry[] {
    const own: Entry[] = []
    const sources: unknown[] = []
    for (const { key, value } of map.items) {
      const node = isAlias(key) ? this.#aliasTargets.get(key) : key
      const offset =
        (isScalar(key) || isCollection(key) || isAlias(key) ? key.range?.[0] : undefined) ?? location.value
      if (!isScalar(node)) this.#report(location, 'has a key that is not plain text', offset)
      else if (node.value === '<<' && node.type === 'PLAIN')
        sources.push(...(isSeq(value) ? value.items : [value]))
      else own.push({ key: typeof node.value === 'string' ? node.value : (node.source ?? ''), offset, value })
    }
    const set = new Set(own.map(entry => entry.key))
    for (const source of sources) {
      const merged = isAlias(source) ? this.#aliasTargets.get(source) : source
      if (!isMap(merged) || this.#open.has(merged)) {
        this.#report(location, 'can merge (<<) only mappings that are defined earlier in the file')
        continue
      }
      if (this.#exceedsAliasLimit(location)) break
      for (const entry of this.#whileOpen(merged, () => this.#entries(merged, location))) {
        if (!set.has(entry.key)) own.push(entry)
        set.add(entry.key)
      }
    }
    return own
  }

  #scalar(scalar: Scalar, pointer: string, location: SourceLocation): unknown {
    const [from, to] = scalar.range ?? [0, 0]
    const next =
      this.#parseDiagnostics[countWhile(this.#parseDiagnostics, diagnostic => diagnostic.offset < from)]
    if (next !== undefined && next.offset < to) return this.#markUnknown(pointer)
    if (typeof scalar.value !== 'string' || !scalar.value.includes('${')) return scalar.value
    if (this.#room < 0) return this.#markUnknown(pointer)
    const { text, variables, fromFile, putIn, errors } = this.#interpolate(scalar.value, this.#room)
    this.#room -= putIn
    this.#interpolated.set(pointer, variables)
    if (fromFile) this.#fromFile.add(pointer)
    for (const message of errors) this.#report(location, message)
    return errors.length === 0 ? text : this.#markUnknown(pointer)
  }

  #whileOpen<T>(node: Node, work: () => T): T {
    this.#open.add(node)
    try {
      return work()
    } finally {
      this.#open.delete(node)
    }
  }

  #exceedsAliasLimit(location: SourceLocation): boolean {
    if (this.#aliasedValues < MAX_ALIASED_VALUES) {
      // Nested aliases can exceed the depth limit, even if the text itself does not.
      this.#aliasedValues = this.#open.size > MAX_DEPTH ? MAX_ALIASED_VALUES : this.#aliasedValues + 1
      if (this.#aliasedValues === MAX_ALIASED_VALUES)
        this.#report(location, 'the aliases expand to too many values')
    }
    return this.#aliasedValues >= MAX_ALIASED_VALUES
  }

  #markUnknown(pointer: string): undefined {
    this.#unknown.add(pointer)
    return undefined
  }

  #report(location: SourceLocation, message: string, offset = location.value): void {
    this.#diagnostics.push({ offset, path: location.path, message })
  }
}

/** @param target the value that the alias refers to; undefined if there is none */
function unreadable(alias: Alias, target: Node | undefined): string {
  if (target !== undefined) return 'the alias is inside the value that it refers to'
  if (alias.source.startsWith('.')) return 'put a wildcard in quotes, such as "*.example.com"'
  return 'the alias refers to an anchor that is not defined earlier in the file'
}
