// The number of concurrent deliveries is limited, in total and per receiver. Slow receivers have a separate limit.
import { describe, expect, it } from 'vitest'
import { createDeliverySlots } from '../../../src/webhooks/delivery/delivery-slots.ts'

const lanes = () => createDeliverySlots({ normal: 3, slow: 2, perReceiver: 2 })

describe('delivery slots', () => {
  it('are counted for each class, and for each receiver with running deliveries', () => {
    const some = lanes()
    const first = some.acquire('a', 'normal')
    some.acquire('a', 'normal')
    some.acquire('b', 'normal')
    expect([some.freeSlots('normal'), some.freeSlots('slow')]).toEqual([0, 2])
    expect(some.busyReceivers()).toEqual(
      new Map([
        ['a', 0],
        ['b', 1],
      ]),
    )
    first.release(false)
    expect(some.freeSlots('normal')).toBe(1)
    expect(some.busyReceivers().get('a')).toBe(1)
    some.acquire('c', 'normal').release(false)
    expect(some.busyReceivers().has('c')).toBe(false)
  })

  it('move a delivery that waits too long to the slow class, and remember its receiver as slow', () => {
    const some = lanes()
    const hanging = some.acquire('a', 'normal')
    hanging.moveToSlow()
    expect([some.freeSlots('normal'), some.freeSlots('slow')]).toEqual([3, 1])
    expect(some.slowReceivers()).toEqual(['a'])
    hanging.moveToSlow()
    expect([some.freeSlots('normal'), some.freeSlots('slow')]).toEqual([3, 1])
    hanging.release(true)
    expect([some.freeSlots('normal'), some.freeSlots('slow')]).toEqual([3, 2])
    expect(some.slowReceivers()).toEqual(['a'])
  })

  it('move a delivery to the slow class even if this class is full; the number of free slots is then negative', () => {
    const some = lanes()
    const places = ['a', 'b', 'c'].map(receiver => some.acquire(receiver, 'normal'))
    for (const place of places) place.moveToSlow()
    expect([some.freeSlots('normal'), some.freeSlots('slow')]).toEqual([3, -1])
    expect(some.slowReceivers()).toEqual(['a', 'b', 'c'])
    for (const place of places) place.release(true)
    expect([some.freeSlots('normal'), some.freeSlots('slow')]).toEqual([3, 2])
  })

  it('forget that a receiver was slow as soon as it responds in time', () => {
    const some = lanes()
    some.acquire('a', 'normal').release(true)
    expect(some.slowReceivers()).toEqual(['a'])
    some.acquire('a', 'slow').release(false)
    expect(some.slowReceivers()).toEqual([])
  })

  it('remember at most 10,000 slow receivers and forget the oldest', () => {
    const some = lanes()
    for (let i = 0; i <= 10_000; i += 1) some.acquire(`r${i}`, 'normal').release(true)
    expect(some.slowReceivers()).toHaveLength(10_000)
    expect(some.slowReceivers()).not.toContain('r0')
    expect(some.slowReceivers()).toContain('r10000')
  })

  it('report whether a waiting delivery may start when a slot becomes free', () => {
    const some = lanes()
    const [a, b, c] = ['a', 'b', 'c'].map(receiver => some.acquire(receiver, 'normal'))
    expect(a?.moveToSlow()).toBe(true)
    expect(b?.moveToSlow()).toBe(false)
    expect(c?.release(false)).toBe(false)
    expect(b?.release(false)).toBe(true)
    some.acquire('a', 'normal')
    expect(a?.release(false)).toBe(true)
  })
})
