// Reference-counted resources that snapshots share: each is closed when the last snapshot holding it releases it.

export interface Resource<T> {
  readonly value: T
  /** Called when no active snapshot holds it; requests of retired snapshots still use it. */
  quiesce?(): void
  /** Called when no snapshot holds it any more. */
  close?(): void | Promise<void>
}

/** @param name identifies the resource and everything it is built from: another name is another resource */
export type GetOrCreate = <T>(name: string, make: () => Resource<T>) => T

/** The resources of one snapshot. */
export interface ResourceScope {
  /** The reusable resource of that name, or a new one. */
  readonly getOrCreate: GetOrCreate
  /** Call when the snapshot is no longer active. */
  quiesce(): void
  /** Call after the snapshot's last request. Resolves when the resources that no other scope holds are closed. */
  release(): Promise<void>
}

export interface ResourcePool {
  openScope(): ResourceScope
  /** Closes all open resources, even those still held. */
  close(): Promise<void>
}

interface Entry {
  readonly resource: Resource<unknown>
  /** Scopes that hold it, quiesced ones included. */
  references: number
  /** Scopes that hold it and are not quiesced. */
  activeReferences: number
}

export function createResourcePool(): ResourcePool {
  /** Reusable by the next snapshot. Quiesced resources are not; they are created afresh. */
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
