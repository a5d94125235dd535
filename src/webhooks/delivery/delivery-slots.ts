// Limits concurrent deliveries: in total, per receiver, and separately for slow receivers.

export type SlotClass = 'normal' | 'slow'

interface Slot {
  /**
   * Moves the delivery to the slow class. Call this when the receiver has not responded for a while. The slow class can
   * then exceed its limit, but it cannot grow without end. Every attempt times out, and before this timeout, only a
   * limited number of deliveries can move from the normal slots.
   * @returns whether other deliveries may be waiting for the slot that became free
   */
  moveToSlow(): boolean
  /**
   * @param isSlow whether the receiver responded late or did not respond
   * @returns whether other deliveries may be waiting for the slot that became free
   */
  release(isSlow: boolean): boolean
}

interface DeliverySlots {
  readonly perReceiver: number
  /**
   * Returns how many more deliveries can start in the class. The number is negative if too many deliveries were moved
   * to the class.
   */
  freeSlots(slotClass: SlotClass): number
  acquire(receiver: string, slotClass: SlotClass): Slot
  /** Returns, for each receiver with running deliveries, how many more deliveries to it can start. */
  busyReceivers(): Map<string, number>
  /** Returns the receivers that are remembered as slow. */
  slowReceivers(): string[]
}

export interface SlotLimits {
  normal: number
  /** The limit for deliveries to slow receivers. */
  slow: number
  perReceiver: number
}

/**
 * The maximum number of receivers that are remembered as slow. The oldest receiver is forgotten first. The next
 * delivery to a forgotten receiver begins in a normal slot, even if the receiver is still slow.
 */
const maxSlowReceivers = 10_000

export function createDeliverySlots(limits: SlotLimits): DeliverySlots {
  const used = { normal: 0, slow: 0 }
  const inFlight = new Map<string, number>()
  const slow = new Set<string>()

  function remember(receiver: string): void {
    slow.add(receiver)
    const [oldest] = slow
    if (slow.size > maxSlowReceivers && oldest !== undefined) slow.delete(oldest)
  }

  return {
    perReceiver: limits.perReceiver,
    freeSlots: slotClass => limits[slotClass] - used[slotClass],

    acquire(receiver, initialClass) {
      let slotClass = initialClass
      used[slotClass] += 1
      inFlight.set(receiver, (inFlight.get(receiver) ?? 0) + 1)
      return {
        moveToSlow() {
          remember(receiver)
          if (slotClass === 'slow') return false
          const wasFull = used.normal >= limits.normal
          used.normal -= 1
          used.slow += 1
          slotClass = 'slow'
          return wasFull
        },
        release(isSlow) {
          const count = inFlight.get(receiver) ?? 1
          const wasFull = used[slotClass] >= limits[slotClass] || count >= limits.perReceiver
          used[slotClass] -= 1
          const left = count - 1
          if (left === 0) inFlight.delete(receiver)
          else inFlight.set(receiver, left)
          if (isSlow) remember(receiver)
          else slow.delete(receiver)
          return wasFull
        },
      }
    },

    busyReceivers: () =>
      new Map([...inFlight].map(([receiver, count]) => [receiver, Math.max(0, limits.perReceiver - count)])),
    slowReceivers: () => [...slow],
  }
}
