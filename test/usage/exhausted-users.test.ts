// The gateway caches which users have no uses left. An entry is valid until the day ends or the record of the user
// changes.
import { describe, expect, it } from 'vitest'
import { createExhaustedUsers } from '../../src/usage/exhausted-users.ts'
import { handFeed } from '../support/hand-feed.ts'

const day = '2096-02-28'

function stage(maxUsers = 10) {
  const feed = handFeed()
  return { feed, spent: createExhaustedUsers({ feed, maxUsers }) }
}

describe('a user without remaining uses', () => {
  it('is found in the cache only on the day of the entry', () => {
    const { spent } = stage()
    expect(spent.get(1) === day).toBe(false)
    spent.beginRead()(1, day)
    expect(spent.get(1) === day).toBe(true)
    expect(spent.get(2) === day).toBe(false)
    expect(spent.get(1) === '2096-02-29').toBe(false)
    expect(spent.get(1) === '2096-02-27').toBe(false)
  })

  it('is removed from the cache when the record of this user changes, but not when another record changes', () => {
    const { feed, spent } = stage()
    spent.beginRead()(1, day)
    feed.tell('user 2')
    feed.tell('key 1')
    expect(spent.get(1) === day).toBe(true)
    feed.tell('user 1')
    expect(spent.get(1) === day).toBe(false)
  })

  it('is not cached if the change feed reports a change or a gap while the record is read', () => {
    const { feed, spent } = stage()
    const changed = spent.beginRead()
    feed.tell('user 1')
    changed(1, day)
    expect(spent.get(1) === day).toBe(false)
    const lost = spent.beginRead()
    feed.trust(false)
    feed.trust(true)
    lost(1, day)
    expect(spent.get(1) === day).toBe(false)
    spent.beginRead()(1, day)
    expect(spent.get(1) === day).toBe(true)
  })

  it('is neither found in the cache nor added to it while the change feed is not fresh', () => {
    const { feed, spent } = stage()
    spent.beginRead()(1, day)
    feed.trust(false)
    expect(spent.get(1) === day).toBe(false)
    spent.beginRead()(2, day)
    feed.trust(true)
    expect([spent.get(1) === day, spent.get(2) === day]).toEqual([false, false])
  })

  it('is evicted from a full cache if it is the oldest entry', () => {
    const { spent } = stage(2)
    for (const user of [1, 2, 3]) spent.beginRead()(user, day)
    expect([1, 2, 3].map(user => spent.get(user) === day)).toEqual([false, true, true])
  })
})
