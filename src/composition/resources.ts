// Parts that one configuration hands on to the next: each stays for as long as somebody is served with it.

export interface Resource<T> {
  readonly value: T
  /** Called when no configuration that is in force has it; whoever was let in before is still served with it. */
  quiesce?(): void
  /** Called when nobody is served with it any more. */
  close?(): void | Promise<void>
}

/** @param name of the part, with all that it is made by: of another name it would be another one */
export type GetOrCreate = <T>(name: string, make: () => Resource<T>) => T

/** The parts of one configuration. */
export interface ResourceScope {
  /** The part that stands under the name, or a new one. */
  readonly getOrCreate: GetOrCreate
  /** The configuration is not in force any more. */
  quiesce(): void
  /** Nobody is served with it any more. Resolves when what nobody else holds has closed. */
  release(): Promise<void>
}

export interface ResourcePool {
  openScope(): ResourceScope
  /** Closes all that is left, whoever holds it. */
  close(): Promise<void>
}

interface Entry {
  readonly resource: Resource<unknown>
  /** Configurations that have it, those that rest included. */
  references: number
  /** Those that do not. */
  activeReferences: number
}

export function createResourcePool(): ResourcePool {
  /** Those that may be handed on: what rests is not, its successor begins anew. */
  const reusable = new Map<string, Entry>()
  const open = new Set<Entry>()

  async function close(entries: Iterable<Entry>): Promise<void> {
    await Promise.all([...entries].map(entry => (open.delete(entry) ? entry.resource.close?.() : undefined)))
  }

  return {
    openScope() {
      const entries = new Map<string, Entry>()
      let isQuiesced = false
      const quiesce = () => {
        if (isQuiesced) return
        isQuiesced = true
        for (const [name, entry] of entries) {
          entry.activeReferences -= 1
          if (entry.activeReferences > 0) continue
          reusable.delete(name)
          entry.resource.quiesce?.()
        }
      }
      return {
        getOrCreate<T>(name: string, make: () => Resource<T>): T {
          const entry = entries.get(name) ??
            reusable.get(name) ?? { resource: make(), references: 0, activeReferences: 0 }
          if (!entries.has(name)) {
            entry.references += 1
            entry.activeReferences += 1
          }
          entries.set(name, entry)
          reusable.set(name, entry)
          open.add(entry)
          return entry.resource.value as T
        },
        quiesce,
        async release() {
          quiesce()
          const left = [...entries.values()]
          entries.clear()
          await close(left.filter(entry => --entry.references === 0))
        },
      }
    },
    close: () => close(open),
  }
}
