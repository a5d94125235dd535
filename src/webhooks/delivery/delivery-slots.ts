// How many deliveries are under way at once: in all, to one receiver, and to the slow ones apart from the others.

export type Lane = 'usual' | 'slow'

export interface Place {
  /**
   * The receiver has not answered for a while: it goes on in the slow lane, if there is room.
   * @returns whether others may have waited for the place that it leaves
   */
  moveAside(): boolean
  /**
   * @param isSlow whether the receiver answered too late or not at all
   * @returns whether others may have waited for the place that it leaves
   */
  end(isSlow: boolean): boolean
}

export interface Lanes {
  readonly perReceiver: number
  /** How many more the lane takes. */
  free(lane: Lane): number
  /** Takes a place. */
  begin(receiver: string, lane: Lane): Place
  /** Receivers that have some under way, with how many more each may have. */
  busy(): Map<string, number>
  /** Receivers that are known to be slow. */
  slow(): string[]
}

export interface LaneSizes {
  usual: number
  slow: number
  perReceiver: number
}

/** Receivers that are remembered as slow; the oldest is forgotten first, and costs one more place when it hangs again. */
const mostRemembered = 10_000

export function createLanes(sizes: LaneSizes): Lanes {
  const taken = { usual: 0, slow: 0 }
  const underWay = new Map<string, number>()
  const slow = new Set<string>()

  function remember(receiver: string): void {
    slow.add(receiver)
    const [oldest] = slow
    if (slow.size > mostRemembered && oldest !== undefined) slow.delete(oldest)
  }

  return {
    perReceiver: sizes.perReceiver,
    free: lane => sizes[lane] - taken[lane],

    begin(receiver, first) {
      let lane = first
      taken[lane] += 1
      underWay.set(receiver, (underWay.get(receiver) ?? 0) + 1)
      return {
        moveAside() {
          remember(receiver)
          if (lane === 'slow' || taken.slow >= sizes.slow) return false
          const wasFull = taken.usual >= sizes.usual
          taken.usual -= 1
          taken.slow += 1
          lane = 'slow'
          return wasFull
        },
        end(isSlow) {
          const count = underWay.get(receiver) ?? 1
          const wasFull = taken[lane] >= sizes[lane] || count >= sizes.perReceiver
          taken[lane] -= 1
          const left = count - 1
          if (left === 0) underWay.delete(receiver)
          else underWay.set(receiver, left)
          if (isSlow) remember(receiver)
          else slow.delete(receiver)
          return wasFull
        },
      }
    },

    busy: () =>
      new Map([...underWay].map(([receiver, count]) => [receiver, Math.max(0, sizes.perReceiver - count)])),
    slow: () => [...slow],
  }
}
