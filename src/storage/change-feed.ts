// Tracks the record changes of which this process was notified, and whether it may have missed some.
import { randomUUID } from 'node:crypto'
import type { Queryable } from './database.ts'

/** Receives the notifications of Postgres. Also called when some of them may have been missed. */
export interface NotificationHandlers {
  onNotification(channel: string, payload: string): void
  /** The connection is lost. Later notifications may be missed. */
  onLost(): void
  /** From now on, every committed notification is received. */
  onListening(): void
}

export interface Notifications {
  /** Drops the connection and opens another, because an expected notification did not arrive in time. */
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
   * @param onGap called when any record may have changed, so that everything cached must be dropped
   * @returns a function that unsubscribes
   */
  subscribe(listener: (change: string) => void, onGap: () => void): () => void
  /**
   * Resolves when this process was notified of every change that is committed so far. A process that makes a change
   * calls this and waits, so the change takes effect there immediately. The wait takes at most one second. If the
   * notifications do not arrive in time, the feed is no longer fresh, so no cached record is used.
   */
  catchUp(): Promise<void>
  close(): Promise<void>
}

interface Dependencies {
  listen: Listen
  /**
   * The database in which the changes are committed. Heartbeats must be sent through it, so that Postgres sends the
   * notifications of earlier changes before the heartbeat.
   */
  database: Queryable
  /** A monotonic clock, for example `performance.now()`. */
  now(): number
  /** Called when the feed is lost, and when it works again. */
  onState(state: 'trusted' | 'lost'): void
}

const changesChannel = 'peage_changes'

/** The trigger's payload when a table was emptied. */
const anyPayload = 'all'

const heartbeatIntervalMs = 500

/**
 * How long a heartbeat proves that the feed is fresh. A change must take effect within 5 s. A part of the 5 s is left
 * for the time to read a record.
 */
const maxHeartbeatAgeMs = 3_000

/** The maximum time until a change takes effect in the process that made it. */
const catchUpTimeoutMs = 1_000

/** Two clocks may differ by this much more after a heartbeat, because clocks are rounded and adjusted. */
const clockToleranceMs = 100

export function createChangeFeed({ listen, database, now, onState }: Dependencies): ChangeFeed {
  // Each process has its own channel, because a hundred replicas must not receive each other's heartbeats.
  const heartbeatChannel = `peage_heartbeat_${randomUUID().replaceAll('-', '_')}`
  const subscribers = new Set<{ listener: (change: string) => void; onGap: () => void }>()
  /** Heartbeats that were sent and not received, in the order of sending. */
  const pendingHeartbeats = new Map<number, { at: number; onHeard: () => void }>()
  let heartbeatCount = 0
  let isListening = false
  let isSending = false
  let isClosed = false
  /**
   * The time of the oldest heartbeat that was not answered. If sending it failed, this is the time of the attempt to
   * send it.
   */
  let unansweredSince: number | undefined
  let freshUntil = Number.NEGATIVE_INFINITY
  /** By how many milliseconds the clock of Postgres was at most ahead of `now` at the last heartbeat. */
  let mostAheadMs = Number.POSITIVE_INFINITY
  let lastState: 'trusted' | 'lost' = 'trusted'

  const isFresh = () => now() < freshUntil

  function notifyGap(): void {
    for (const { onGap } of subscribers) onGap()
  }

  /**
   * Drops all caches. Heartbeats that are still pending no longer prove anything. So they are discarded, and the code
   * that waits for them resumes.
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
    // Notifications arrive in order. So everything that was committed before an earlier heartbeat has also been
    // notified, and earlier heartbeats that have not arrived count as received.
    for (const [earlier, { onHeard }] of [...pendingHeartbeats]) {
      if (earlier > sequence) break
      pendingHeartbeats.delete(earlier)
      onHeard()
    }
    freshUntil = heartbeat.at + maxHeartbeatAgeMs
    if (isFresh()) reportState('trusted')
  }

  /**
   * Drops all caches if the clock of Postgres was set forward. The end of a cached period may then have passed.
   * @param sentAt when the heartbeat was sent, by `now`
   */
  function checkClock(postgresMs: number, sentAt: number): void {
    if (postgresMs - now() > mostAheadMs + clockToleranceMs) notifyGap()
    mostAheadMs = postgresMs - sentAt
  }

  /**
   * @returns true if the heartbeat was sent; false if it is uncertain whether it was sent. If it is false, no caller
   *   waits for the heartbeat.
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
      // The connection may be dead without an error, so a new one is opened. If that fails too, the next heartbeat
      // detects it.
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
