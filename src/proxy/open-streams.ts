// Open WebSockets and event streams: ended on drain, and when their user is no longer admitted (CONTRACT §4).
import type { Clock } from '../clock.ts'
import type { Route } from '../gate/routing/route.ts'
import type { AuthenticatedUser, Identity } from '../identity/identity.ts'
import type { UserStatus, UserStatusStore } from '../users/user-status-store.ts'

/** Why a stream ends: the gateway stops, or its user is no longer admitted. */
type EndReason = 'stopping' | 'not_admitted'

type StreamKind = 'web_socket' | 'event_stream'

type AdmittedBy = Pick<Route, 'plans' | 'verified'>

interface OpenStream {
  readonly kind: StreamKind
  /** Only users' streams are re-authorized, not anonymous ones. */
  readonly identity: Identity
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
  store: UserStatusStore
  clock: Clock
  onError(error: unknown): void
}

/** Interval of re-authorization: with the time that closing takes, below the promised second (CONTRACT §4). */
const checkIntervalMs = 400

/** Without a successful check for this long, no user counts as admitted any more (CONTRACT §4). */
const maxUncheckedMs = 30_000

export function createOpenStreams({ store, clock, onError }: Dependencies): OpenStreams {
  const open = new Set<OpenStream>()
  /** Users' streams, each with the identity that opened it. */
  const watched = new Map<OpenStream, AuthenticatedUser>()
  let timer: NodeJS.Timeout | undefined
  let isChecking = false
  let isEnding = false
  let isStopped = false
  let lastCheckedAt = 0

  function end(stream: OpenStream, reason: EndReason): void {
    forget(stream)
    stream.end(reason)
  }

  function forget(stream: OpenStream): void {
    open.delete(stream)
    watched.delete(stream)
  }

  async function check(): Promise<void> {
    timer = undefined
    if (watched.size === 0) return
    isChecking = true
    const started = performance.now()
    // Only streams that this query covers: one that opens meanwhile is missing from the result, not unauthorized.
    const checked = [...watched]
    try {
      const statuses = await store.read([...new Set(checked.map(([, { user }]) => user.id))])
      lastCheckedAt = clock.now()
      for (const [stream, identity] of checked) {
        const isIn = isAdmitted(identity, stream.route, statuses.get(identity.user.id))
        if (!isIn && open.has(stream)) end(stream, 'not_admitted')
      }
    } catch (error) {
      onError(error)
      if (clock.now() - lastCheckedAt >= maxUncheckedMs) {
        for (const [stream] of checked) if (open.has(stream)) end(stream, 'not_admitted')
      }
    }
    isChecking = false
    scheduleCheck(Math.max(0, checkIntervalMs - (performance.now() - started)))
  }

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
        if (watched.size === 0) lastCheckedAt = clock.now()
        watched.set(stream, identity)
        scheduleCheck(checkIntervalMs)
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
    },
  }
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
