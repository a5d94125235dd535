// Which changes of the records this process has heard of, and up to when it has heard of all of them (CONTRACT §3).
import { randomUUID } from 'node:crypto'
import type { Queryable } from './database.ts'
import type { Listen } from './notifications.ts'

export interface ChangeFeed {
  /**
   * Everything that was committed until `longest` milliseconds ago has been heard of; looked at on every use of what
   * is remembered. Where it is false, nothing that is remembered counts.
   */
  isFresh(): boolean
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

interface Dependencies {
  listen: Listen
  /** Where changes are made: the heartbeat is sent through it, so that it is heard behind them. */
  database: Queryable
  /** Milliseconds on a clock that no one sets: `performance.now()`. */
  now(): number
  /** Told when the feed is lost, and when it is back. */
  onState(state: 'trusted' | 'lost'): void
}

const changesChannel = 'peage_changes'

/** What the trigger says where a table was emptied. */
const anyPayload = 'all'

/** Milliseconds between two heartbeats. */
const heartbeatIntervalMs = 500

/** Milliseconds for which a heartbeat is believed: with what a look at the record takes, within the 5 s of CONTRACT §3. */
const maxHeartbeatAgeMs = 3_000

/** Milliseconds that a change may take to be in force where it was made. */
const catchUpTimeoutMs = 1_000

export function createChangeFeed({ listen, database, now, onState }: Dependencies): ChangeFeed {
  // A channel of this process' own: the heartbeats of a hundred replicas are not for all of them to hear.
  const heartbeatChannel = `peage_heartbeat_${randomUUID().replaceAll('-', '_')}`
  const subscribers = new Set<{ listener: (change: string) => void; onGap: () => void }>()
  /** The heartbeats that are to be heard, in the order they were sent in. */
  const pendingHeartbeats = new Map<number, { at: number; onHeard: () => void }>()
  let heartbeatCount = 0
  let isListening = false
  let isSending = false
  let isClosed = false
  /** When the first heartbeat was sent, or tried, of which nothing was heard since. */
  let unansweredSince: number | undefined
  let freshUntil = Number.NEGATIVE_INFINITY
  let lastState: 'trusted' | 'lost' = 'trusted'

  const isFresh = () => now() < freshUntil

  function notifyGap(): void {
    for (const { onGap } of subscribers) onGap()
  }

  /** Whoever waits to hear a heartbeat waits for nothing: what it was to tell them of is forgotten. */
  function invalidateAll(): void {
    freshUntil = Number.NEGATIVE_INFINITY
    notifyGap()
    const waiting = [...pendingHeartbeats.values()]
    pendingHeartbeats.clear()
    for (const { onHeard } of waiting) onHeard()
  }

  function reportState(state: 'trusted' | 'lost'): void {
    if (state === lastState || isClosed) return
    lastState = state
    onState(state)
  }

  const notifications = listen([changesChannel, heartbeatChannel], {
    onNotification(channel, payload) {
      if (channel !== changesChannel) onHeartbeat(Number(payload))
      else if (payload === anyPayload) notifyGap()
      else for (const { listener } of subscribers) listener(payload)
    },
    onLost() {
      isListening = false
      invalidateAll()
      reportState('lost')
    },
    onListening() {
      // Again: a look at the records that began before this may have missed what nobody heard.
      invalidateAll()
      isListening = !isClosed
      unansweredSince = undefined
      void heartbeat()
    },
  })

  function onHeartbeat(sequence: number): void {
    const heartbeat = pendingHeartbeats.get(sequence)
    if (heartbeat === undefined) return
    unansweredSince = undefined
    // What was missed while nobody could tell is forgotten before anything is believed again.
    if (!isFresh()) notifyGap()
    // One that was sent earlier may be heard later; what was committed before it has been heard of all the same.
    for (const [earlier, { onHeard }] of [...pendingHeartbeats]) {
      if (earlier > sequence) break
      pendingHeartbeats.delete(earlier)
      onHeard()
    }
    freshUntil = heartbeat.at + maxHeartbeatAgeMs
    if (isFresh()) reportState('trusted')
  }

  /** Whether it was sent; where that is not known it is not waited for. */
  async function send(onHeard: () => void): Promise<boolean> {
    heartbeatCount += 1
    const sequence = heartbeatCount
    pendingHeartbeats.set(sequence, { at: now(), onHeard })
    unansweredSince ??= now()
    try {
      await database.query('select pg_notify($1, $2)', [heartbeatChannel, String(sequence)])
      return true
    } catch {
      pendingHeartbeats.delete(sequence)
      return false
    }
  }

  async function heartbeat(): Promise<void> {
    if (unansweredSince !== undefined && now() - unansweredSince >= maxHeartbeatAgeMs) {
      // It may be cut off without a word: only another connection tells. Where there is none, another heartbeat does.
      unansweredSince = undefined
      reportState('lost')
      notifications.reconnect()
    }
    if (!isListening || isSending) return
    isSending = true
    await send(() => {})
    isSending = false
  }

  const timer = setInterval(heartbeat, heartbeatIntervalMs).unref()
  return {
    isFresh,
    subscribe(listener, onGap) {
      const subscriber = { listener, onGap }
      subscribers.add(subscriber)
      return () => subscribers.delete(subscriber)
    },
    async catchUp() {
      if (!isFresh()) return
      await new Promise<void>(resolve => {
        const timeout = setTimeout(invalidateAll, catchUpTimeoutMs)
        const onHeard = () => {
          clearTimeout(timeout)
          resolve()
        }
        void send(onHeard).then(isSent => {
          if (isSent) return
          invalidateAll()
          onHeard()
        })
      })
    },
    async close() {
      isClosed = true
      isListening = false
      clearInterval(timer)
      invalidateAll()
      await notifications.close()
    },
  }
}
