// Picks the target of a request: round-robin over the healthy ones (CONTRACT §2, `targets`).
import type { Target } from './target.ts'

/**
 * Always returns a target: the guards check availability before, while a refusal still costs nothing.
 * @param failed the target that just failed; another is picked if one is available
 */
export type PickTarget = (failed?: Target) => Target

/** @param targets at least one */
export function createLoadBalancer(targets: readonly Target[]): PickTarget {
  const only = targets[0] as Target
  if (targets.length === 1) return () => only
  let next = 0
  return failed => {
    const start = next
    let best = start
    let leastPenalty = Number.POSITIVE_INFINITY
    for (let step = 0; step < targets.length && leastPenalty > 0; step += 1) {
      const index = (start + step) % targets.length
      const penalty = penaltyOf(targets[index] as Target, failed)
      if (penalty >= leastPenalty) continue
      best = index
      leastPenalty = penalty
    }
    next = (best + 1) % targets.length
    return targets[best] as Target
  }
}

function penaltyOf(target: Target, failed: Target | undefined): number {
  if (!target.isAvailable()) return 4
  if (target === failed) return 3
  if (target.ejection?.isEjected()) return 2
  return target.pool.hasFree() ? 0 : 1
}
