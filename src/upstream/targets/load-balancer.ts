// Which target a request goes to: round-robin over those that are well (CONTRACT §2, `targets`).
import type { Target } from './target.ts'

/**
 * Always one: that there is an available one is asked before, by the guards, while a refusal still costs nothing.
 * @param tried the one that just failed: another is taken where an available one is left
 */
export type Choose = (tried?: Target) => Target

/** @param targets at least one */
export function createChoice(targets: readonly Target[]): Choose {
  const only = targets[0] as Target
  if (targets.length === 1) return () => only
  let next = 0
  return tried => {
    const start = next
    let best = start
    let least = Number.POSITIVE_INFINITY
    for (let step = 0; step < targets.length && least > 0; step += 1) {
      const index = (start + step) % targets.length
      const drawback = drawbackOf(targets[index] as Target, tried)
      if (drawback >= least) continue
      best = index
      least = drawback
    }
    next = (best + 1) % targets.length
    return targets[best] as Target
  }
}

function drawbackOf(target: Target, tried: Target | undefined): number {
  if (!target.isAvailable()) return 4
  if (target === tried) return 3
  if (target.ejection?.isOut()) return 2
  return target.connections.isFree() ? 0 : 1
}
