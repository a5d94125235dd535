// The change feed is fresh while it receives its own heartbeats in time. The test moves the clock.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  type ChangeFeed,
  createChangeFeed,
  type NotificationHandlers,
} from '../../src/storage/change-feed.ts'

describe('the change feed', () => {
  let feed: ChangeFeed
  let handlers: NotificationHandlers
  let own: string
  /** The heartbeats that the feed has sent. The test decides when they arrive. */
  let beats: string[]
  /** Returns the response of Postgres to a heartbeat: the time of its clock, or nothing if the time does not matter. */
  let send: () => Promise<{ ms: number }[]>
  let reconnects: number
  let gaps: number
  let states: string[]
  let time: number

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] })
    beats = []
    reconnects = 0
    gaps = 0
    states = []
    time = 1_000_000
    send = async () => []
    feed = createChangeFeed({
      listen(channels, given) {
        own = channels[1] ?? ''
        handlers = given
        return {
          reconnect() {
            reconnects += 1
          },
          close: async () => {},
        }
      },
      database: {
        query: async <Row>(_sql: string, values: readonly unknown[] = []) => {
          beats.push(String(values[1]))
          return (await send()) as unknown[] as Row[]
        },
      },
      now: () => time,
      onState: state => states.push(state),
    })
    feed.subscribe(
      () => {},
      () => {
        gaps += 1
      },
    )
  })
  afterEach(async () => {
    await feed.close()
    vi.useRealTimers()
  })

  async function pass(milliseconds: number): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += 100) {
      time += 100
      await vi.advanceTimersByTimeAsync(100)
    }
  }
  const hear = (beat = beats.at(-1)) => handlers.onNotification(own, String(beat))
  const listening = async () => {
    handlers.onListening()
    await vi.advanceTimersByTimeAsync(0)
  }
  const trusted = async () => {
    await listening()
    hear()
    expect(feed.isFresh()).toBe(true)
    gaps = 0
  }

  it('is not fresh before it receives a heartbeat that it sent while listening', async () => {
    expect(feed.isFresh()).toBe(false)
    await listening()
    expect(feed.isFresh()).toBe(false)
    hear('99')
    expect(feed.isFresh()).toBe(false)
    hear()
    expect(feed.isFresh()).toBe(true)
  })

  it('is fresh for 3 s, which start when the last received heartbeat was sent', async () => {
    await listening()
    await pass(400)
    hear()
    time += 2_599
    expect(feed.isFresh()).toBe(true)
    time += 1
    expect(feed.isFresh()).toBe(false)
  })

  it('is not fresh after a heartbeat that took 3 s or longer', async () => {
    await listening()
    handlers.onLost()
    await listening()
    time += 3_000
    hear()
    expect(feed.isFresh()).toBe(false)
    expect(states).toEqual(['lost'])
  })

  it('ignores the send time of a heartbeat that arrives out of order', async () => {
    await trusted()
    await pass(1_000)
    expect(beats).toEqual(['1', '2', '3'])
    hear('3')
    time += 2_900
    expect(feed.isFresh()).toBe(true)
    hear('2')
    hear('1')
    expect(feed.isFresh()).toBe(true)
    time += 100
    expect(feed.isFresh()).toBe(false)
    hear('2')
    expect(feed.isFresh()).toBe(false)
  })

  it('reports a gap after a short interruption, before it is fresh again', async () => {
    await trusted()
    await pass(2_900)
    const last = beats.at(-1)
    time += 200
    expect([feed.isFresh(), gaps]).toEqual([false, 0])
    hear(last)
    expect([feed.isFresh(), gaps]).toEqual([true, 1])
    expect(states).toEqual([])
  })

  it('reports a gap when its connection is lost and when it reconnects, and ignores heartbeats sent before the loss', async () => {
    await trusted()
    await pass(500)
    handlers.onLost()
    expect([feed.isFresh(), gaps, states]).toEqual([false, 1, ['lost']])
    const before = beats.at(-1)
    await listening()
    expect(gaps).toBe(2)
    hear(before)
    expect(feed.isFresh()).toBe(false)
    hear()
    expect([feed.isFresh(), states]).toEqual([true, ['lost', 'trusted']])
  })

  it('reports the loss only once if a transaction pooler drops all heartbeats, and keeps trying new connections', async () => {
    await listening()
    await pass(3_600)
    expect([states, reconnects]).toEqual([['lost'], 1])
    await pass(3_600)
    expect([states, reconnects]).toEqual([['lost'], 2])
  })

  it('can become fresh again without a new connection, because the embedded database has no connections', async () => {
    await trusted()
    time += 10_000
    await vi.advanceTimersByTimeAsync(500)
    await pass(4_000)
    hear()
    expect(feed.isFresh()).toBe(true)
  })

  it('is not fresh while it cannot send heartbeats', async () => {
    await trusted()
    send = () => Promise.reject(new Error('away'))
    await pass(2_000)
    const failed = beats.at(-1)
    await pass(1_000)
    hear(failed)
    expect(feed.isFresh()).toBe(false)
    send = async () => []
    await pass(500)
    hear()
    expect(feed.isFresh()).toBe(true)
  })

  it('sends the next heartbeat to a slow database only after the previous statement has ended', async () => {
    await trusted()
    const before = beats.length
    let end = () => {}
    send = () =>
      new Promise(resolve => {
        end = () => resolve([])
      })
    await pass(2_500)
    expect(beats.length).toBe(before + 1)
    end()
    await pass(500)
    expect(beats.length).toBe(before + 2)
    end()
  })

  it('reports a gap if the clock of Postgres was set forward, but not if it was set back or a response is late', async () => {
    let ahead = 5_000
    let delay = 0
    send = async () => {
      const sentAt = time
      time += delay
      return [{ ms: sentAt + ahead }]
    }
    const gapsAfter = async (change: () => void) => {
      change()
      gaps = 0
      await pass(500)
      hear()
      return gaps
    }
    await trusted()
    expect(await gapsAfter(() => {})).toBe(0)
    expect(await gapsAfter(() => (ahead += 2_000))).toBe(1)
    expect(await gapsAfter(() => (delay = 900))).toBe(0)
    expect(await gapsAfter(() => (delay = 0))).toBe(0)
    expect(await gapsAfter(() => (ahead -= 60_000))).toBe(0)
    expect(await gapsAfter(() => (ahead += 60_000))).toBe(1)
  })

  describe('catching up', () => {
    const isOver = async (promise: Promise<void>) => {
      let isSettled = false
      void promise.then(() => {
        isSettled = true
      })
      await vi.advanceTimersByTimeAsync(0)
      return isSettled
    }

    it('ends when its own heartbeat or a later heartbeat arrives', async () => {
      await trusted()
      await pass(500)
      const [earlier, first, second] = [beats.at(-1), feed.catchUp(), feed.catchUp()]
      hear(earlier)
      expect([await isOver(first), await isOver(second)]).toEqual([false, false])
      hear(beats.at(-1))
      expect([await isOver(first), await isOver(second)]).toEqual([true, true])
      expect(gaps).toBe(0)
    })

    it('ends after a second without a heartbeat, and the feed is then not fresh', async () => {
      await trusted()
      const waiting = feed.catchUp()
      await pass(900)
      expect(await isOver(waiting)).toBe(false)
      await pass(100)
      expect(await isOver(waiting)).toBe(true)
      expect([feed.isFresh(), gaps]).toEqual([false, 1])
    })

    it('ends at once if its heartbeat cannot be sent, or if the feed is lost or not fresh', async () => {
      await trusted()
      send = () => Promise.reject(new Error('away'))
      await feed.catchUp()
      expect([feed.isFresh(), gaps]).toEqual([false, 1])
      await feed.catchUp()
      send = async () => []
      await trusted()
      const waiting = feed.catchUp()
      handlers.onLost()
      await waiting
      expect(feed.isFresh()).toBe(false)
    })

    it('ends when the feed is closed, and leaves no timer behind', async () => {
      await trusted()
      const waiting = feed.catchUp()
      await feed.close()
      await waiting
      expect(vi.getTimerCount()).toBe(0)
      expect(states).toEqual([])
      await listening()
      expect(feed.isFresh()).toBe(false)
    })
  })
})
