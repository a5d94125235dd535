// How many deliveries may be under way: in all, to one receiver, and to slow ones in a lane of their own.
import { describe, expect, it } from 'vitest'
import { createLanes } from '../../../src/webhooks/delivery/delivery-slots.ts'

const lanes = () => createLanes({ usual: 3, slow: 2, perReceiver: 2 })

describe('lanes', () => {
  it('count places in each lane, and what each receiver may still have', () => {
    const some = lanes()
    const first = some.begin('a', 'usual')
    some.begin('a', 'usual')
    some.begin('b', 'usual')
    expect([some.free('usual'), some.free('slow')]).toEqual([0, 2])
    expect(some.busy()).toEqual(
      new Map([
        ['a', 0],
        ['b', 1],
      ]),
    )
    first.end(false)
    expect(some.free('usual')).toBe(1)
    expect(some.busy().get('a')).toBe(1)
    some.begin('c', 'usual').end(false)
    expect(some.busy().has('c')).toBe(false)
  })

  it('move what is not answered for a while to the slow lane, and know its receiver from then on', () => {
    const some = lanes()
    const hanging = some.begin('a', 'usual')
    hanging.moveAside()
    expect([some.free('usual'), some.free('slow')]).toEqual([3, 1])
    expect(some.slow()).toEqual(['a'])
    hanging.moveAside()
    expect([some.free('usual'), some.free('slow')]).toEqual([3, 1])
    hanging.end(true)
    expect([some.free('usual'), some.free('slow')]).toEqual([3, 2])
    expect(some.slow()).toEqual(['a'])
  })

  it('leave it where it is when the slow lane is full, and know its receiver all the same', () => {
    const some = lanes()
    const places = ['a', 'b', 'c'].map(receiver => some.begin(receiver, 'usual'))
    for (const place of places) place.moveAside()
    expect([some.free('usual'), some.free('slow')]).toEqual([2, 0])
    expect(some.slow()).toEqual(['a', 'b', 'c'])
    for (const place of places) place.end(true)
    expect([some.free('usual'), some.free('slow')]).toEqual([3, 2])
  })

  it('forget that a receiver was slow as soon as it answers in time', () => {
    const some = lanes()
    some.begin('a', 'usual').end(true)
    expect(some.slow()).toEqual(['a'])
    some.begin('a', 'slow').end(false)
    expect(some.slow()).toEqual([])
  })

  it('remember ten thousand slow receivers at most, and forget the oldest', () => {
    const some = lanes()
    for (let i = 0; i <= 10_000; i += 1) some.begin(`r${i}`, 'usual').end(true)
    expect(some.slow()).toHaveLength(10_000)
    expect(some.slow()).not.toContain('r0')
    expect(some.slow()).toContain('r10000')
  })

  it('say when a place comes free that others may have waited for', () => {
    const some = lanes()
    const [a, b, c] = ['a', 'b', 'c'].map(receiver => some.begin(receiver, 'usual'))
    expect(a?.moveAside()).toBe(true)
    expect(b?.moveAside()).toBe(false)
    expect(c?.end(false)).toBe(false)
    expect(b?.end(false)).toBe(true)
    some.begin('a', 'usual')
    expect(a?.end(false)).toBe(true)
  })
})
