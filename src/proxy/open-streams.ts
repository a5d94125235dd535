// Tracks open WebSockets and event streams. Ends them when the gateway drains, or when their user is no longer
// admitted.
import type { SessionOfUser, SessionStore } from '../accounts/session-store.ts'
import type { Clock } from '../clock.ts'
import type { Plans } from '../config/plans.ts'
import { checkKeyForRoute } from '../gate/guards/require-scope.ts'
import type { Route } from '../gate/routing/route.ts'
import { type ApiKey, type ApiKeyStore, isExpired } from '../identity/api-keys/api-key-store.ts'
import type { AuthenticatedUser, Identity } from '../identity/identity.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'
import type { UserStatus, UserStatusStore } from '../users/user-status-store.ts'

type EndReason = 'stopping' | 'not_admitted'

type StreamKind = 'web_socket' | 'event_stream'

type AdmittedBy = Pick<Route, 'scope' | 'bearer_only' | 'plans' | 'quota' | 'verified'>

interface OpenStream {
  readonly kind: StreamKind
  /** Only streams of users are re-authorized, not anonymous streams. */
  readonly identity: Identity
  /** Whether the stream ends when the session of its access token ends (`auth.logout_ends_access`). */
  readonly endsWithSession: boolean
  readonly route: AdmittedBy
  end(reason: EndReason): void
}

export interface OpenStreams {
  /** @returns a function that removes the stream */
  add(stream: OpenStream): () => void
  count(): Record<StreamKind, number>
  /** Ends all open streams. From then on, also ends every new stream when it opens. */
  endAll(): void
  /** Stops re-authorization. */
  stop(): void
}

interface Dependencies {
  users: UserStatusStore
  apiKeys: Pick<ApiKeyStore, 'findActiveByIds'>
  sessions: Pick<SessionStore, 'findActive'>
  /** The plans of the active configuration. */
  plans(): Plans
  /** Reports the end of a session, so that its streams end before the next regular check. */
  feed: Pick<ChangeFeed, 'subscribe'>
  clock: Clock
  /** A monotonic clock, for example `performance.now()`. */
  now(): number
  onError(error: unknown): void
}

/**
 * The interval of re-authorization. A stream must end within one second after its user is no longer admitted. Closing
 * the stream takes a part of this second, so the interval is shorter.
 */
const checkIntervalMs = 400

/** If no check has succeeded for this long, all streams of users are ended. */
const maxUncheckedMs = 30_000

export function createOpenStreams({
  users,
  apiKeys,
  sessions,
  plans,
  feed,
  clock,
  now,
  onError,
}: Dependencies): OpenStreams {
  const open = new Set<OpenStream>()
  /** The streams that users opened, each with the identity of its user. */
  const watched = new Map<OpenStream, AuthenticatedUser>()
  /**
   * The streams that a change may end. The key is the change as the database reports it, for example `user 1`. Only
   * streams that end with a session are in this map.
   */
  const byChange = new Map<string, Set<OpenStream>>()
  const notified = new Set<OpenStream>()
  /**
   * The times at which the API keys of the streams expire. With them, a stream ends in time even if Postgres is down.
   */
  const keyExpiries = new Map<OpenStream, number>()
  let timer: NodeJS.Timeout | undefined
  let isChecking = false
  /** Runs while a stream has a key that expires. */
  let expiryTimer: NodeJS.Timeout | undefined
  let isCheckingNotified = false
  let isEnding = false
  let isStopped = false
  let lastCheckedMs = 0

  function end(stream: OpenStream, reason: EndReason): void {
    forget(stream)
    stream.end(reason)
  }

  function forget(stream: OpenStream): void {
    open.delete(stream)
    watched.delete(stream)
    keyExpiries.delete(stream)
    for (const change of changesOf(stream)) {
      const streams = byChange.get(change)
      streams?.delete(stream)
      if (streams?.size === 0) byChange.delete(change)
    }
  }

  function noteExpiry(stream: OpenStream, key: ApiKey | undefined): void {
    if (key === undefined || key.expiresAtMs === null) keyExpiries.delete(stream)
    else {
      keyExpiries.set(stream, key.expiresAtMs)
      expiryTimer ??= setInterval(endExpired, checkIntervalMs).unref()
    }
  }

  function endExpired(): void {
    for (const [stream, expiresAtMs] of keyExpiries) {
      if (isExpired({ expiresAtMs }, clock.now())) end(stream, 'not_admitted')
    }
    if (keyExpiries.size > 0) return
    clearInterval(expiryTimer)
    expiryTimer = undefined
  }

  /** Ends the given streams whose user is no longer admitted. @throws StorageError */
  async function reauthorize(checked: readonly [OpenStream, AuthenticatedUser][]): Promise<void> {
    const named = checked.flatMap(([stream]) => sessionOf(stream) ?? [])
    const keyIds = checked.flatMap(([, { apiKey }]) => apiKey?.id ?? [])
    const [statuses, active, keys] = await Promise.all([
      users.read([...new Set(checked.map(([, { user }]) => user.id))]),
      named.length === 0 ? undefined : sessions.findActive(named, new Date(clock.now())),
      keyIds.length === 0 ? undefined : apiKeys.findActiveByIds([...new Set(keyIds)]),
    ])
    for (const [stream, identity] of checked) {
      if (!open.has(stream)) continue
      const sessionId = sessionOf(stream)?.sessionId
      const key = identity.apiKey && keys?.get(identity.apiKey.id)
      const isIn =
        isAdmitted(stream.route, statuses.get(identity.user.id), plans()) &&
        (sessionId === undefined || active?.has(sessionId) === true) &&
        (identity.apiKey === undefined || isKeyAdmitted(stream.route, identity.user.id, key))
      if (isIn) noteExpiry(stream, key)
      else end(stream, 'not_admitted')
    }
  }

  async function check(): Promise<void> {
    timer = undefined
    if (watched.size === 0) return
    isChecking = true
    const startedMs = now()
    // A copy, because streams may be added to `watched` during the query. The result has no entry for these streams, so
    // checking them would end them.
    const checked = [...watched]
    try {
      await reauthorize(checked)
      lastCheckedMs = now()
    } catch (error) {
      onError(error)
      if (now() - lastCheckedMs >= maxUncheckedMs) {
        for (const [stream] of checked) if (open.has(stream)) end(stream, 'not_admitted')
      }
    }
    isChecking = false
    scheduleCheck(Math.max(0, checkIntervalMs - (now() - startedMs)))
  }

  /**
   * Checks the streams whose user or session was reported as changed. Streams that are reported during a check are
   * checked after it. If a check fails, the next regular check includes its streams.
   */
  async function checkNotified(): Promise<void> {
    if (isCheckingNotified || isStopped) return
    isCheckingNotified = true
    while (notified.size > 0) {
      const checked = [...notified].flatMap((stream): [OpenStream, AuthenticatedUser][] => {
        const identity = watched.get(stream)
        return identity === undefined ? [] : [[stream, identity]]
      })
      notified.clear()
      await reauthorize(checked).catch(onError)
    }
    isCheckingNotified = false
  }

  function notify(streams: Iterable<OpenStream>): void {
    for (const stream of streams) notified.add(stream)
    void checkNotified()
  }

  const unsubscribe = feed.subscribe(
    change => notify(byChange.get(change) ?? []),
    () => {},
  )

  function scheduleCheck(time: number): void {
    if (watched.size === 0 || isStopped || isChecking || timer !== undefined) return
    timer = setTimeout(check, time)
  }

  return {
    add(stream) {
      open.add(stream)
      // Ends the stream later, so that the response head is sent first.
      if (isEnding) setImmediate(() => open.has(stream) && end(stream, 'stopping'))
      const { identity } = stream
      if (identity.kind === 'user') {
        if (watched.size === 0) lastCheckedMs = now()
        watched.set(stream, identity)
        noteExpiry(stream, identity.apiKey)
        scheduleCheck(checkIntervalMs)
        for (const change of changesOf(stream)) {
          byChange.set(change, (byChange.get(change) ?? new Set()).add(stream))
        }
        // The session may have ended after the guards passed, so it is checked now.
        if (sessionOf(stream) !== undefined) notify([stream])
      }
      return () => forget(stream)
    },
    count() {
      const counts = { web_socket: 0, event_stream: 0 }
      for (const { kind } of open) counts[kind] += 1
      return counts
    },
    endAll() {
      isEnding = true
      for (const stream of open) end(stream, 'stopping')
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
      clearInterval(expiryTimer)
      unsubscribe()
    },
  }
}

/** Returns the session whose end also ends the stream; undefined if there is none. */
function sessionOf({ identity, endsWithSession }: OpenStream): SessionOfUser | undefined {
  if (!endsWithSession || identity.kind !== 'user' || identity.sessionId === undefined) return undefined
  return { userId: identity.user.id, sessionId: identity.sessionId }
}

function changesOf(stream: OpenStream): string[] {
  const session = sessionOf(stream)
  return session === undefined
    ? []
    : [`session ${session.userId} ${session.sessionId}`, `user ${session.userId}`]
}

/**
 * Returns whether the guards would admit the user now. The expiry of the access token is ignored, because the token was
 * valid when the stream opened.
 */
function isAdmitted(
  { plans, quota, verified }: AdmittedBy,
  now: UserStatus | undefined,
  configured: Plans,
): boolean {
  if (now === undefined) return false
  if (verified && !now.isVerified) return false
  if (plans === undefined && quota === undefined) return true
  if (configured.find(now.plan) === undefined) return false
  if (quota !== undefined && configured.allowance(now.plan, quota.name)?.limit === 0) return false
  return plans === undefined || plans.includes(now.plan)
}

/**
 * Returns whether the key still belongs to the user and the scope guard would admit the key now. The expiry of the key
 * is checked separately.
 */
function isKeyAdmitted(route: AdmittedBy, userId: number, now: ApiKey | undefined): boolean {
  return now?.userId === userId && checkKeyForRoute(route)(now) === undefined
}
