// WebSockets and event streams that are open: ended on a drain, and when their user would not be let in any more (CONTRACT §4).
import type { Clock } from '../clock.ts'
import type { Route } from '../gate/routing/route.ts'
import type { AuthenticatedUser, Identity } from '../identity/identity.ts'
import type { UserStatus, UserStatusStore } from '../users/user-status-store.ts'

/** Why a stream is ended: the gateway stops, or its user is not let in any more. */
export type EndReason = 'stopping' | 'not_admitted'

export type StreamKind = 'web_socket' | 'event_stream'

export interface OpenStream {
  readonly kind: StreamKind
  /** Nobody in particular is watched for nothing. */
  readonly identity: Identity
  readonly plans: Route['plans']
  end(reason: EndReason): void
}

export interface OpenStreams {
  /** @returns forgets it */
  add(stream: OpenStream): () => void
  /** How many are open. */
  count(): Record<StreamKind, number>
  /** Ends those that are open, and from then on each as it opens. */
  endAll(): void
  /** Looks after them no more. */
  stop(): void
}

interface Dependencies {
  store: UserStatusStore
  clock: Clock
  onError(error: unknown): void
}

/** Milliseconds between two looks at the records: with what closing takes, less than the second that is promised. */
const checkIntervalMs = 400

/** Milliseconds without a look that succeeded, after which nobody is known to be let in (CONTRACT §4). */
const maxUncheckedMs = 30_000

export function createOpenStreams({ store, clock, onError }: Dependencies): OpenStreams {
  const open = new Set<OpenStream>()
  /** Those of users, with who it was that opened them. */
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
    // Those alone that the statement asks for: one that opens meanwhile is not gone because it is not in the answer.
    const checked = [...watched]
    try {
      const statuses = await store.read([...new Set(checked.map(([, { user }]) => user.id))])
      lastCheckedAt = clock.now()
      for (const [stream, identity] of checked) {
        const isIn = isAdmitted(identity, stream.plans, statuses.get(identity.user.id))
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
      // Once its head is on its way.
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

/** As the guards would have it now, the token's expiry aside: it was good when the stream was opened. */
function isAdmitted(
  identity: AuthenticatedUser,
  plans: Route['plans'],
  now: UserStatus | undefined,
): boolean {
  if (now === undefined) return false
  if (identity.credential === 'api_token' && now.apiTokenId !== identity.apiTokenId) return false
  return plans === undefined || plans.includes(now.plan)
}
