// Which upstreams are the same service: those that have a target in common (CONTRACT §2, §6).

/** Whether two upstream names lead to one service; a name leads to its own, even if nothing else is known of it. */
export type SameService = (one: string, other: string) => boolean

/** @param origins the targets of each upstream, as `parseTarget` returns them */
export function sharedTargets(origins: ReadonlyMap<string, readonly string[]>): SameService {
  const named = new Map([...origins].map(([name, targets]) => [name, new Set(targets)]))
  return (one, other) => {
    if (one === other) return true
    const theirs = named.get(other)
    return theirs !== undefined && (origins.get(one)?.some(origin => theirs.has(origin)) ?? false)
  }
}
