// Limits concurrent deliveries: in total, per receiver, and separately for slow receivers.

export type SlotClass = 'normal' | 'slow'

interface Slot {
  /**
   * The receiver has not responded for a while: moves the delivery to the slow class, also past its limit. How far is
   * bounded all the same: the normal slots let through no more than their number in that while, and attempts time out.
   * @returns whether other deliveries may be waiting for the slot it leaves
   */
  moveToSlow(): boolean
  /**
   * @param isSlow whether the receiver responded late or not at all
   * @returns whether other deliveries may be waiting for the slot it leaves
   */
  release(isSlow: boolean): boolean
}

interface DeliverySlots {
  readonly perReceiver: number
  /** How many more deliveries the class admits; below 0 where more were moved to it. */
  freeSlots(slotClass: SlotClass): number
  /** Occupies a slot. */
  acquire(receiver: string, slotClass: SlotClass): Slot
  /** Receivers with running deliveries, and how many more each may have. */
  busyReceivers(): Map<string, number>
  /** Receivers known to be slow. */
  slowReceivers(): string[]
}

export interface SlotLimits {
  normal: number
  /** Of leases for receivers known to be slow. */
  slow: number
  perReceiver: number
}

/** Receivers remembered as slow; the oldest is dropped first, and takes a normal slot when it hangs again. */
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
