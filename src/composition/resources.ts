// Parts that one configuration hands on to the next: each stays for as long as somebody is served with it.

export interface Kept<T> {
  readonly part: T
  /** Called when no configuration that is in force has it; whoever was let in before is still served with it. */
  rest?(): void
  /** Called when nobody is served with it any more. */
  close?(): void | Promise<void>
}

/** @param name of the part, with all that it is made by: of another name it would be another one */
export type Keep = <T>(name: string, make: () => Kept<T>) => T

/** The parts of one configuration. */
export interface Holding {
  /** The part that stands under the name, or a new one. */
  readonly keep: Keep
  /** The configuration is not in force any more. */
  rest(): void
  /** Nobody is served with it any more. Resolves when what nobody else holds has closed. */
  release(): Promise<void>
}

export interface Shelf {
  hold(): Holding
  /** Closes all that is left, whoever holds it. */
  close(): Promise<void>
}

interface Entry {
  readonly kept: Kept<unknown>
  /** Configurations that have it, those that rest included. */
  holders: number
  /** Those that do not. */
  inForce: number
}

export function createShelf(): Shelf {
  /** Those that may be handed on: what rests is not, its successor begins anew. */
  const byName = new Map<string, Entry>()
  const open = new Set<Entry>()

  async function close(entries: Iterable<Entry>): Promise<void> {
    await Promise.all([...entries].map(entry => (open.delete(entry) ? entry.kept.close?.() : undefined)))
  }

  return {
    hold() {
      const held = new Map<string, Entry>()
      let isResting = false
      const rest = () => {
        if (isResting) return
        isResting = true
        for (const [name, entry] of held) {
          entry.inForce -= 1
          if (entry.inForce > 0) continue
          byName.delete(name)
          entry.kept.rest?.()
        }
      }
      return {
        keep<T>(name: string, make: () => Kept<T>): T {
          const entry = held.get(name) ?? byName.get(name) ?? { kept: make(), holders: 0, inForce: 0 }
          if (!held.has(name)) {
            entry.holders += 1
            entry.inForce += 1
          }
          held.set(name, entry)
          byName.set(name, entry)
          open.add(entry)
          return entry.kept.part as T
        },
        rest,
        async release() {
          rest()
          const left = [...held.values()]
          held.clear()
          await close(left.filter(entry => --entry.holders === 0))
        },
      }
    },
    close: () => close(open),
  }
}
