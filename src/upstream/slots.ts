// How many exchanges an upstream may have at once: the others wait here, where they can still be turned away.
import { ClientGone } from '../refusals/client-gone.ts'
import { Refusal } from '../refusals/refusal.ts'

export interface Slots {
  isFree(): boolean
  /** Takes a slot if one is free; give it back with `release`. */
  tryTake(): boolean
  /**
   * Waits for a slot, first come first served.
   * @throws Refusal 503 `upstream_unavailable` when the wait is over (CONTRACT §2, `connections`)
   * @throws ClientGone when `onGone` calls back
   */
  take(onGone: (leave: () => void) => void): Promise<void>
  release(): void
}

/**
 * In front of undici and not in its queue: what waits there cannot be taken out again, so that requests that were
 * refused long ago would stay in memory, with all their fields, for as long as the connections are busy.
 * @param count `connections` @param wait milliseconds, `timeouts.connect`
 */
export function createSlots(count: number, wait: number): Slots {
  let free = count
  const waiting = new Set<() => void>()
  return {
    isFree: () => free > 0,
    tryTake() {
      if (free === 0) return false
      free -= 1
      return true
    },
    take(onGone) {
      return new Promise((resolve, reject) => {
        const leave = (error: Error) => {
          clearTimeout(timer)
          if (waiting.delete(enter)) reject(error)
        }
        const enter = () => {
          clearTimeout(timer)
          waiting.delete(enter)
          resolve()
        }
        const timer = setTimeout(() => leave(new Refusal('upstream_unavailable')), wait)
        waiting.add(enter)
        onGone(() => leave(new ClientGone()))
      })
    },
    release() {
      const [next] = waiting
      // Handed over, so that nobody who comes now gets in before those who wait.
      if (next === undefined) free += 1
      else next()
    },
  }
}
