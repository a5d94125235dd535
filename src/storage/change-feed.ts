// Which changes of the records this process has heard of, and up to when it has heard of all of them (CONTRACT §3).
import { randomUUID } from 'node:crypto'
import type { Queryable } from './database.ts'
import type { Listen } from './notifications.ts'

export interface ChangeFeed {
  /**
   * Everything that was committed until `longest` milliseconds ago has been heard of; looked at on every use of what
   * is remembered. Where it is false, nothing that is remembered counts.
   */
  isTrusted(): boolean
  /**
   * @param listener told of a change, as the trigger words it: `user 1`, `key HASH`
   * @param onGap told that anything may have changed: all that was remembered before is to be forgotten
   * @returns tells them no more
   */
  subscribe(listener: (change: string) => void, onGap: () => void): () => void
  /**
   * Resolves when all that is committed by now has been heard of here, so that a change is in force at once where it
   * was made; in a second at the latest, and then nothing that is remembered counts.
   */
  catchUp(): Promise<void>
  close(): Promise<void>
}

interface Parts {
  listen: Listen
  /** Where changes are made: the heartbeat is sent through it, so that it is heard behind them. */
  database: Queryable
  /** Milliseconds on a clock that no one sets: `performance.now()`. */
  now(): number
  /** Told when the feed is lost, and when it is back. */
  onState(state: 'trusted' | 'lost'): void
}

const changes = 'peage_changes'

/** What the trigger says where a table was emptied. */
const everything = 'all'

/** Milliseconds between two heartbeats. */
const interval = 500

/** Milliseconds for which a heartbeat is believed: with what a look at the record takes, within the 5 s of CONTRACT §3. */
const longest = 3_000

/** Milliseconds that a change may take to be in force where it was made. */
const patience = 1_000

export function createChangeFeed({ listen, database, now, onState }: Parts): ChangeFeed {
  // A channel of this process' own: the heartbeats of a hundred replicas are not for all of them to hear.
  const own = `peage_heartbeat_${randomUUID().replaceAll('-', '_')}`
  const subscribers = new Set<{ listener: (change: string) => void; onGap: () => void }>()
  /** The heartbeats that are to be heard, in the order they were sent in. */
  const sent = new Map<number, { at: number; onHeard: () => void }>()
  let beats = 0
  let isListening = false
  let isBeating = false
  let isClosed = false
  /** When the first heartbeat was sent, or tried, of which nothing was heard since. */
  let unheardSince: number | undefined
  let trustedUntil = Number.NEGATIVE_INFINITY
  let lastState: 'trusted' | 'lost' = 'trusted'

  const isTrusted = () => now() < trustedUntil

  function forgetAll(): void {
    for (const { onGap } of subscribers) onGap()
  }

  /** Whoever waits to hear a heartbeat waits for nothing: what it was to tell them of is forgotten. */
  function distrust(): void {
    trustedUntil = Number.NEGATIVE_INFINITY
    forgetAll()
    const waiting = [...sent.values()]
    sent.clear()
    for (const { onHeard } of waiting) onHeard()
  }

  function tell(state: 'trusted' | 'lost'): void {
    if (state === lastState || isClosed) return
    lastState = state
    onState(state)
  }

  const notifications = listen([changes, own], {
    onNotification(channel, payload) {
      if (channel !== changes) heard(Number(payload))
      else if (payload === everything) forgetAll()
      else for (const { listener } of subscribers) listener(payload)
    },
    onLost() {
      isListening = false
      distrust()
      tell('lost')
    },
    onListening() {
      // Again: a look at the records that began before this may have missed what nobody heard.
      distrust()
      isListening = !isClosed
      unheardSince = undefined
      void beat()
    },
  })

  function heard(number: number): void {
    const beat = sent.get(number)
    if (beat === undefined) return
    unheardSince = undefined
    // What was missed while nobody could tell is forgotten before anything is believed again.
    if (!isTrusted()) forgetAll()
    // One that was sent earlier may be heard later; what was committed before it has been heard of all the same.
    for (const [earlier, { onHeard }] of [...sent]) {
      if (earlier > number) break
      sent.delete(earlier)
      onHeard()
    }
    trustedUntil = beat.at + longest
    if (isTrusted()) tell('trusted')
  }

  /** Whether it was sent; where that is not known it is not waited for. */
  async function send(onHeard: () => void): Promise<boolean> {
    beats += 1
    const number = beats
    sent.set(number, { at: now(), onHeard })
    unheardSince ??= now()
    try {
      await database.query('select pg_notify($1, $2)', [own, String(number)])
      return true
    } catch {
      sent.delete(number)
      return false
    }
  }

  async function beat(): Promise<void> {
    if (unheardSince !== undefined && now() - unheardSince >= longest) {
      // It may be cut off without a word: only another connection tells. Where there is none, another heartbeat does.
      unheardSince = undefined
      tell('lost')
      notifications.reconnect()
    }
    if (!isListening || isBeating) return
    isBeating = true
    await send(() => {})
    isBeating = false
  }

  const timer = setInterval(beat, interval).unref()
  return {
    isTrusted,
    subscribe(listener, onGap) {
      const subscriber = { listener, onGap }
      subscribers.add(subscriber)
      return () => subscribers.delete(subscriber)
    },
    async catchUp() {
      if (!isTrusted()) return
      await new Promise<void>(resolve => {
        const late = setTimeout(distrust, patience)
        const onHeard = () => {
          clearTimeout(late)
          resolve()
        }
        void send(onHeard).then(isSent => {
          if (isSent) return
          distrust()
          onHeard()
        })
      })
    },
    async close() {
      isClosed = true
      isListening = false
      clearInterval(timer)
      distrust()
      await notifications.close()
    },
  }
}
