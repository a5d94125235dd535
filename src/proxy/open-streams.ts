// Open WebSockets and event streams: ended on drain, and when their user is no longer admitted (CONTRACT §4).
import type { SessionOfUser, SessionStore } from '../accounts/session-store.ts'
import type { Clock } from '../clock.ts'
import type { Route } from '../gate/routing/route.ts'
import type { AuthenticatedUser, Identity } from '../identity/identity.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'
import type { UserStatus, UserStatusStore } from '../users/user-status-store.ts'

/** Why a stream ends: the gateway stops, or its user is no longer admitted. */
type EndReason = 'stopping' | 'not_admitted'

type StreamKind = 'web_socket' | 'event_stream'

type AdmittedBy = Pick<Route, 'plans' | 'verified'>

interface OpenStream {
  readonly kind: StreamKind
  /** Only users' streams are re-authorized, not anonymous ones. */
  readonly identity: Identity
  /** Whether it ends with the session of its access token (`auth.logout_ends_access`). */
  readonly endsWithSession: boolean
  /** What its route asks of users. */
  readonly route: AdmittedBy
  end(reason: EndReason): void
}

export interface OpenStreams {
  /** @returns removes the stream again */
  add(stream: OpenStream): () => void
  /** Open streams per kind. */
  count(): Record<StreamKind, number>
  /** Ends all open streams, and from then on each new one as it opens. */
  endAll(): void
  /** Stops re-authorization. */
  stop(): void
}

interface Dependencies {
  users: UserStatusStore
  sessions: Pick<SessionStore, 'findActive'>
  /** Tells of the end of a session before the next check would. */
  feed: Pick<ChangeFeed, 'subscribe'>
  clock: Clock
  /** A monotonic clock: `performance.now()`. */
  now(): number
  onError(error: unknown): void
}

/** Interval of re-authorization: with the time that closing takes, below the promised second (CONTRACT §4). */
const checkIntervalMs = 400

/** Without a successful check for this long, no user counts as admitted any more (CONTRACT §4). */
const maxUncheckedMs = 30_000

export function createOpenStreams({ users, sessions, feed, clock, now, onError }: Dependencies): OpenStreams {
  const open = new Set<OpenStream>()
  /** Users' streams, each with the identity that opened it. */
  const watched = new Map<OpenStream, AuthenticatedUser>()
  /** The streams that end with a session, by the changes that may have ended it, as the trigger words them. */
  const byChange = new Map<string, Set<OpenStream>>()
  const notified = new Set<OpenStream>()
  let timer: NodeJS.Timeout | undefined
  let isChecking = false
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
    for (const change of changesOf(stream)) {
      const streams = byChange.get(change)
      streams?.delete(stream)
      if (streams?.size === 0) byChange.delete(change)
    }
  }

  /** Ends those of the given streams whose user is no longer admitted. @throws StorageError */
  async function reauthorize(checked: readonly [OpenStream, AuthenticatedUser][]): Promise<void> {
    const named = checked.flatMap(([stream]) => sessionOf(stream) ?? [])
    const [statuses, active] = await Promise.all([
      users.read([...new Set(checked.map(([, { user }]) => user.id))]),
      named.length === 0 ? undefined : sessions.findActive(named, new Date(clock.now())),
    ])
    for (const [stream, identity] of checked) {
      const sessionId = sessionOf(stream)?.sessionId
      const isIn =
        isAdmitted(identity, stream.route, statuses.get(identity.user.id)) &&
        (sessionId === undefined || active?.has(sessionId) === true)
      if (!isIn && open.has(stream)) end(stream, 'not_admitted')
    }
  }

  async function check(): Promise<void> {
    timer = undefined
    if (watched.size === 0) return
    isChecking = true
    const startedMs = now()
    // Only streams that this query covers: one that opens meanwhile is missing from the result, not unauthorized.
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

  /** Those that are notified meanwhile come next. If it fails, the next check looks at them too. */
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
      // Deferred until its response head is on the way.
      if (isEnding) setImmediate(() => open.has(stream) && end(stream, 'stopping'))
      const { identity } = stream
      if (identity.kind === 'user') {
        if (watched.size === 0) lastCheckedMs = now()
        watched.set(stream, identity)
        scheduleCheck(checkIntervalMs)
        for (const change of changesOf(stream)) {
          byChange.set(change, (byChange.get(change) ?? new Set()).add(stream))
        }
        // Its session may have ended since the guards passed.
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
      unsubscribe()
    },
  }
}

/** The session that a stream ends with. */
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

/** What the guards would decide now, except for token expiry: the token was valid when the stream opened. */
function isAdmitted(
  identity: AuthenticatedUser,
  { plans, verified }: AdmittedBy,
  now: UserStatus | undefined,
): boolean {
  if (now === undefined) return false
  if (identity.credential === 'api_token' && now.apiTokenId !== identity.apiTokenId) return false
  if (verified && !now.isVerified) return false
  return plans === undefined || plans.includes(now.plan)
}
