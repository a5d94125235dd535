// Which names stand for the same service: two upstreams that have a target in common (CONTRACT §2, §6).

/** Whether two names lead to one service; a name leads to its own, whatever is known of it. */
export type SameService = (one: string, other: string) => boolean

/** @param origins the targets of each upstream, as `parseTarget` reads them */
export function sharedTargets(origins: ReadonlyMap<string, readonly string[]>): SameService {
  return (one, other) => {
    if (one === other) return true
    const theirs = origins.get(other)
    return origins.get(one)?.some(origin => theirs?.includes(origin)) ?? false
  }
}
