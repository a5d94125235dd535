// Tracks which record changes this process was notified of, and until when it has missed none (CONTRACT §3).
import { randomUUID } from 'node:crypto'
import type { Queryable } from './database.ts'

/** What Postgres notifies of, and when some of it may have been missed. */
export interface NotificationHandlers {
  onNotification(channel: string, payload: string): void
  /** The connection is lost; notifications sent since the last one received may be missed. */
  onLost(): void
  /** From now on every committed notification is received. */
  onListening(): void
}

export interface Notifications {
  /** Drops the connection and opens another, because an expected notification did not arrive in time. */
  reconnect(): void
  close(): Promise<void>
}

/** Listens on a dedicated connection until closed; reconnects when that is lost. */
export type Listen = (channels: readonly string[], handlers: NotificationHandlers) => Notifications

export interface ChangeFeed {
  /**
   * Whether every change committed until `maxHeartbeatAgeMs` ago has been notified. Checked on every use of a cache:
   * while it is false, no cached record may be used.
   */
  isFresh(): boolean
  /**
   * @param listener receives each change as the trigger words it: `user 1`, `key HASH`
   * @param onGap called when any record may have changed: everything cached so far must be dropped
   * @returns a function that unsubscribes
   */
  subscribe(listener: (change: string) => void, onGap: () => void): () => void
  /**
   * Resolves when every change committed so far has been notified here, so that a change takes effect at once where
   * it was made. Takes a second at most; then the feed is no longer fresh and no cached record is used.
   */
  catchUp(): Promise<void>
  close(): Promise<void>
}

interface Dependencies {
  listen: Listen
  /** The database that commits the changes: heartbeats sent through it are notified after them. */
  database: Queryable
  /** A monotonic clock: `performance.now()`. */
  now(): number
  /** Called when the feed is lost, and when it is back. */
  onState(state: 'trusted' | 'lost'): void
}

const changesChannel = 'peage_changes'

/** The trigger's payload when a table was emptied. */
const anyPayload = 'all'

const heartbeatIntervalMs = 500

/** How long a heartbeat proves freshness: with a read of the record this is within the 5 s of CONTRACT §3. */
const maxHeartbeatAgeMs = 3_000

/** How long a change may take to become visible where it was made. */
const catchUpTimeoutMs = 1_000

export function createChangeFeed({ listen, database, now, onState }: Dependencies): ChangeFeed {
  // A channel per process: a hundred replicas must not receive each other's heartbeats.
  const heartbeatChannel = `peage_heartbeat_${randomUUID().replaceAll('-', '_')}`
  const subscribers = new Set<{ listener: (change: string) => void; onGap: () => void }>()
  /** Heartbeats not yet received back, in the order they were sent. */
  const pendingHeartbeats = new Map<number, { at: number; onHeard: () => void }>()
  let heartbeatCount = 0
  let isListening = false
  let isSending = false
  let isClosed = false
  /** When the oldest heartbeat since the last one received was sent or attempted. */
  let unansweredSince: number | undefined
  let freshUntil = Number.NEGATIVE_INFINITY
  let lastState: 'trusted' | 'lost' = 'trusted'

  const isFresh = () => now() < freshUntil

  function notifyGap(): void {
    for (const { onGap } of subscribers) onGap()
  }

  /** Drops all caches, so pending heartbeats have nothing left to prove: their waiters resume. */
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
      // Drops the caches again: reads of records that began before LISTEN may have missed changes.
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
    // Changes missed while the feed was not fresh are dropped from the caches before the feed is fresh again.
    if (!isFresh()) notifyGap()
    // Earlier heartbeats may arrive later, but everything committed before them has been notified by now.
    for (const [earlier, { onHeard }] of [...pendingHeartbeats]) {
      if (earlier > sequence) break
      pendingHeartbeats.delete(earlier)
      onHeard()
    }
    freshUntil = heartbeat.at + maxHeartbeatAgeMs
    if (isFresh()) reportState('trusted')
  }

  /** @returns whether it was sent; if that is unknown, the heartbeat is not awaited */
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
      // The connection may be silently dead: only a new one can tell. Without one, the next heartbeat does.
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
