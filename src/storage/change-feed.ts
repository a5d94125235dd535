// Passes on the record changes that Postgres reports to this process. Detects when some of them may have been missed.
import { randomUUID } from 'node:crypto'
import type { Queryable } from './database.ts'

/** Receives the notifications of Postgres. Its other methods report the state of the connection. */
export interface NotificationHandlers {
  onNotification(channel: string, payload: string): void
  /** The connection is lost. Later notifications may be missed. */
  onLost(): void
  /** From now on, every committed notification is received. */
  onListening(): void
}

export interface Notifications {
  /** Replaces the connection. Call this if an expected notification did not arrive in time. */
  reconnect(): void
  close(): Promise<void>
}

/** Listens on a dedicated connection until closed. Reconnects when the connection is lost. */
export type Listen = (channels: readonly string[], handlers: NotificationHandlers) => Notifications

export interface ChangeFeed {
  /**
   * Returns whether this process was notified of every change that was committed more than `maxHeartbeatAgeMs` ago.
   * Check this before every use of a cached record. If it returns false, no cached record may be used.
   */
  isFresh(): boolean
  /**
   * @param listener receives each change in the trigger's format, for example `user 1` or `key HASH`
   * @param onGap called when any record may have changed; the subscriber must then drop everything that it has cached
   * @returns a function that unsubscribes
   */
  subscribe(listener: (change: string) => void, onGap: () => void): () => void
  /**
   * Resolves when this process has been notified of every change that is already committed. A process that makes a
   * change then waits for this, so that the change takes effect there immediately. The wait takes at most 1 s. If the
   * notifications do not arrive in time, the feed is no longer fresh. Then no cached record is used.
   */
  catchUp(): Promise<void>
  close(): Promise<void>
}

interface Dependencies {
  listen: Listen
  /**
   * The database in which the changes are committed. Heartbeats must be sent to the same database, so that Postgres
   * sends the notifications of earlier changes before the heartbeat.
   */
  database: Queryable
  /** A monotonic clock, for example `performance.now()`. */
  now(): number
  /** Called when the feed is lost, and when it works again. */
  onState(state: 'trusted' | 'lost'): void
}

const changesChannel = 'peage_changes'

/** The payload that the trigger sends after a whole table was emptied. */
const anyPayload = 'all'

const heartbeatIntervalMs = 500

/**
 * How long a heartbeat proves that the feed is fresh. A change must take effect within 5 s. The rest of the 5 s is for
 * reading a record.
 */
const maxHeartbeatAgeMs = 3_000

/** The maximum time until a change takes effect in the process that made it. */
const catchUpTimeoutMs = 1_000

/**
 * After a heartbeat, the clock of Postgres may gain this much on `now` without having been set. Clocks are rounded and
 * adjusted.
 */
const clockToleranceMs = 100

export function createChangeFeed({ listen, database, now, onState }: Dependencies): ChangeFeed {
  // Each process has its own channel, because a hundred replicas must not receive each other's heartbeats.
  const heartbeatChannel = `peage_heartbeat_${randomUUID().replaceAll('-', '_')}`
  const subscribers = new Set<{ listener: (change: string) => void; onGap: () => void }>()
  /** Heartbeats that were sent but have not arrived yet, in the order of sending. */
  const pendingHeartbeats = new Map<number, { at: number; onHeard: () => void }>()
  let heartbeatCount = 0
  let isListening = false
  let isSending = false
  let isClosed = false
  /** The time of the oldest attempt to send a heartbeat that has not arrived. */
  let unansweredSince: number | undefined
  let freshUntil = Number.NEGATIVE_INFINITY
  /** At the last heartbeat, the clock of Postgres was ahead of `now` by at most this many milliseconds. */
  let mostAheadMs = Number.POSITIVE_INFINITY
  let lastState: 'trusted' | 'lost' = 'trusted'

  const isFresh = () => now() < freshUntil

  function notifyGap(): void {
    for (const { onGap } of subscribers) onGap()
  }

  /**
   * Drops all caches. Pending heartbeats no longer prove that no change was missed, so they are discarded. The code
   * that waits for them continues.
   */
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
      // Drops the caches again, because reads that began before LISTEN may have missed changes.
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
    // Changes may have been missed while the feed was not fresh. So the caches are dropped before the feed is fresh
    // again.
    if (!isFresh()) notifyGap()
    // Notifications arrive in order. So when this heartbeat arrives, everything that was committed before it has been
    // notified too. Earlier heartbeats that have not arrived count as received.
    for (const [earlier, { onHeard }] of [...pendingHeartbeats]) {
      if (earlier > sequence) break
      pendingHeartbeats.delete(earlier)
      onHeard()
    }
    freshUntil = heartbeat.at + maxHeartbeatAgeMs
    if (isFresh()) reportState('trusted')
  }

  /**
   * Drops all caches if the clock of Postgres was set forward, because a cached period may then have ended.
   * @param sentAt the value of `now()` when the heartbeat was sent
   */
  function checkClock(postgresMs: number, sentAt: number): void {
    if (postgresMs - now() > mostAheadMs + clockToleranceMs) notifyGap()
    mostAheadMs = postgresMs - sentAt
  }

  /**
   * @returns true if the heartbeat was sent; false if this is uncertain. In that case, the heartbeat is no longer
   *   pending.
   */
  async function send(onHeard: () => void): Promise<boolean> {
    heartbeatCount += 1
    const sequence = heartbeatCount
    const sentAt = now()
    pendingHeartbeats.set(sequence, { at: sentAt, onHeard })
    unansweredSince ??= sentAt
    try {
      const [clock] = await database.query<{ ms: number }>(HEARTBEAT, [heartbeatChannel, String(sequence)])
      if (clock !== undefined) checkClock(clock.ms, sentAt)
      return true
    } catch {
      pendingHeartbeats.delete(sequence)
      return false
    }
  }

  async function heartbeat(): Promise<void> {
    if (unansweredSince !== undefined && now() - unansweredSince >= maxHeartbeatAgeMs) {
      // The connection may be dead without an error, so a new connection is opened. If the new one is dead too, a later
      // heartbeat detects this.
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

const HEARTBEAT =
  'select pg_notify($1, $2), (extract(epoch from clock_timestamp()) * 1000)::double precision as ms'
