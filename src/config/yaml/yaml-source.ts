// Reads YAML into plain values and remembers where each of them stands.
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
import { type Fault, joinPath } from '../diagnostics.ts'
import { pointTo } from '../pointer.ts'
import { countWhile, type Position, positionsIn } from '../position.ts'
import { targetsOf } from './aliases.ts'
import type { Interpolated } from './interpolate.ts'
import { maxFileBytes } from './read-file.ts'
import { DEEPEST, parseText, syntaxFaults, Unreadable } from './syntax.ts'

export interface Place {
  readonly path: string
  /** Where its key stands; `undefined` for the root and for items of a list. */
  readonly key: number | undefined
  readonly value: number
}

export interface Sheet {
  /** Objects have no prototype, so that no key of the file reaches `Object.prototype`. */
  readonly value: unknown
  readonly faults: readonly Fault[]
  /** By JSON Pointer, as ajv names places. */
  readonly places: ReadonlyMap<string, Place>
  /** Pointers of scalars that something was put into. */
  readonly interpolated: ReadonlySet<string>
  /** Pointers of values that could not be made out: what else is said of them would be a consequence. */
  readonly unknown: ReadonlySet<string>
}

/** A fault at the value that stands at a JSON Pointer. */
export function faultAt(sheet: Sheet, pointer: string, message: string): Fault {
  const { path = '', value: offset = 0 } = sheet.places.get(pointer) ?? {}
  return { offset, path, message }
}

/** Where what a JSON Pointer names stands; what is not in the file stands where what it would be in does. */
export function positionsOf({ places }: Sheet, text: string): (pointer: string) => Position {
  const positionOf = positionsIn(text)
  return pointer => {
    let place = places.get(pointer)
    for (let above = pointer; place === undefined && above !== ''; place = places.get(above)) {
      above = above.slice(0, above.lastIndexOf('/'))
    }
    return positionOf(place?.key ?? place?.value ?? 0)
  }
}

/** @param room characters that may be put in */
type Interpolate = (text: string, room: number) => Interpolated

/** More values than this through aliases are an attack on memory ("billion laughs"), not a configuration. */
const MOST_ALIASED = 10_000

/** A file of the greatest length with nothing but routes has fewer; what is said of each value takes memory too. */
const MOST_VALUES = 500_000

/** @returns the sheet, or the faults where the text is no YAML to go on with */
export function readDocument(text: string, interpolate: Interpolate): Sheet | Fault[] {
  try {
    const document = parseText(text)
    const { fatal, local } = syntaxFaults(text, document)
    if (fatal !== undefined) return [...local.filter(({ offset }) => offset < fatal.offset), fatal]
    return new Reader(document, interpolate, local).read()
  } catch (error) {
    if (error instanceof Unreadable) return [error.fault]
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
  readonly #syntax: readonly Fault[]
  readonly #faults: Fault[]
  readonly #targets: ReadonlyMap<Alias, Node>
  readonly #places = new Map<string, Place>()
  readonly #interpolated = new Set<string>()
  readonly #unknown = new Set<string>()
  /** Collections being read: an alias to one of them would never end. */
  readonly #open = new Set<Node>()
  #throughAliases = 0
  /** Characters that may still be put in. */
  #room = maxFileBytes

  constructor(document: Document, interpolate: Interpolate, syntax: readonly Fault[]) {
    this.#document = document
    this.#targets = targetsOf(document)
    this.#interpolate = interpolate
    this.#syntax = syntax
    this.#faults = [...syntax]
  }

  read(): Sheet {
    const value = this.#value(this.#document.contents, '', { path: '', key: undefined, value: 0 }, false)
    return {
      value,
      faults: this.#faults,
      places: this.#places,
      interpolated: this.#interpolated,
      unknown: this.#unknown,
    }
  }

  /** @param around the place as far as it is known; where a value is empty, its key stands for it */
  #value(node: unknown, pointer: string, around: Place, aliased: boolean): unknown {
    const range = isScalar(node) || isCollection(node) || isAlias(node) ? node.range : undefined
    const empty = range == null || range[0] === range[1]
    const place = { ...around, value: empty ? (around.key ?? range?.[0] ?? around.value) : range[0] }
    if (this.#places.size >= MOST_VALUES)
      throw new Unreadable(place.value, `has more than ${MOST_VALUES} values`)
    this.#places.set(pointer, place)
    if (aliased && this.#tooMany(place)) return this.#cannotTell(pointer)
    if (isAlias(node)) return this.#alias(node, pointer, place)
    if (isMap(node)) return this.#within(node, () => this.#map(node, pointer, place, aliased))
    if (isSeq(node)) {
      return this.#within(node, () =>
        node.items.map((item, index) => {
          const inner = { path: joinPath(place.path, index), key: undefined, value: place.value }
          return this.#value(item, pointTo(pointer, index), inner, aliased)
        }),
      )
    }
    return isScalar(node) ? this.#scalar(node, pointer, place) : null
  }

  #alias(alias: Alias, pointer: string, place: Place): unknown {
    const target = this.#targets.get(alias)
    if (target === undefined || this.#open.has(target)) {
      const why =
        target === undefined ? 'names no anchor that stands before it' : 'stands inside what it names'
      this.#report(place, `the alias ${why}`)
      return this.#cannotTell(pointer)
    }
    const value = this.#value(target, pointer, place, true)
    // The value itself is wrong or right here; what stands within it, where it is written.
    this.#places.set(pointer, place)
    return value
  }

  #map(map: YAMLMap, pointer: string, place: Place, aliased: boolean): unknown {
    const object: Record<string, unknown> = Object.create(null)
    const first = new Map<string, number>()
    for (const { key, offset, value } of this.#entries(map, place)) {
      const inner = { path: joinPath(place.path, key), key: offset, value: offset }
      if (first.has(key)) {
        this.#report(inner, 'is set twice in the same mapping; keep one', offset)
        continue
      }
      first.set(key, offset)
      object[key] = this.#value(value, pointTo(pointer, key), inner, aliased)
    }
    return object
  }

  /** The pairs of a mapping, then those that it merges in (`<<`) and does not set itself. */
  #entries(map: YAMLMap, place: Place): Entry[] {
    const own: Entry[] = []
    const sources: unknown[] = []
    for (const { key, value } of map.items) {
      const node = isAlias(key) ? this.#targets.get(key) : key
      const offset =
        (isScalar(key) || isCollection(key) || isAlias(key) ? key.range?.[0] : undefined) ?? place.value
      if (!isScalar(node)) this.#report(place, 'has a key that is not plain text', offset)
      else if (node.value === '<<' && node.type === 'PLAIN')
        sources.push(...(isSeq(value) ? value.items : [value]))
      else own.push({ key: keyOf(node), offset, value })
    }
    const set = new Set(own.map(entry => entry.key))
    for (const source of sources) {
      const merged = isAlias(source) ? this.#targets.get(source) : source
      if (!isMap(merged) || this.#open.has(merged)) {
        this.#report(place, 'can merge (<<) only mappings that stand before it')
        continue
      }
      if (this.#tooMany(place)) break
      for (const entry of this.#within(merged, () => this.#entries(merged, place))) {
        if (!set.has(entry.key)) own.push(entry)
        set.add(entry.key)
      }
    }
    return own
  }

  #scalar(scalar: Scalar, pointer: string, place: Place): unknown {
    const [from, to] = scalar.range ?? [0, 0]
    const next = this.#syntax[countWhile(this.#syntax, fault => fault.offset < from)]
    if (next !== undefined && next.offset < to) return this.#cannotTell(pointer)
    if (typeof scalar.value !== 'string' || !scalar.value.includes('${')) return scalar.value
    if (this.#room < 0) return this.#cannotTell(pointer)
    const { text, putIn, faults } = this.#interpolate(scalar.value, this.#room)
    this.#room -= putIn
    this.#interpolated.add(pointer)
    for (const fault of faults) this.#report(place, fault)
    return faults.length === 0 ? text : this.#cannotTell(pointer)
  }

  #within<T>(node: Node, work: () => T): T {
    this.#open.add(node)
    try {
      return work()
    } finally {
      this.#open.delete(node)
    }
  }

  #tooMany(place: Place): boolean {
    if (this.#throughAliases < MOST_ALIASED) {
      // Aliases of aliases may nest deeper than the text does.
      this.#throughAliases = this.#open.size > DEEPEST ? MOST_ALIASED : this.#throughAliases + 1
      if (this.#throughAliases === MOST_ALIASED) this.#report(place, 'aliases stand for too many values')
    }
    return this.#throughAliases >= MOST_ALIASED
  }

  #cannotTell(pointer: string): undefined {
    this.#unknown.add(pointer)
    return undefined
  }

  #report(place: Place, message: string, offset = place.value): void {
    this.#faults.push({ offset, path: place.path, message })
  }
}

function keyOf(scalar: Scalar): string {
  if (typeof scalar.value === 'string') return scalar.value
  return scalar.source ?? ''
}
