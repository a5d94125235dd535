// Manages sessions. A session starts with a token pair at login, is rotated at refresh, and is revoked at logout.
import { randomUUID } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { sha256Hex } from '../identity/token-hash.ts'
import type { TokenSession, Tokens, VerifiedToken } from '../identity/tokens/tokens.ts'
import { Refusal, serviceUnavailable } from '../refusals/refusal.ts'
import type { Queryable } from '../storage/database.ts'
import type { Plan } from '../users/user.ts'
import type { UserWithEpoch } from '../users/user-store.ts'
import type { PendingRevocations } from './pending-revocations.ts'
import { type NewRefreshToken, rotatedRecordTtlMs, type SessionOwner } from './rotation-store.ts'
import { insertSession, type SessionStore } from './session-store.ts'

export interface TokenPair {
  access_token: string
  refresh_token: string
  token_type: 'Bearer'
  plan: Plan
}

/** A token pair and its owner. `userId` is for the access log and not part of the response. */
export interface SignedIn extends TokenPair {
  userId: number
}

export interface Sessions {
  /**
   * Issues the first token pair of a session, after the password was found correct. `epoch` must have been read
   * together with the password's hash.
   * @throws StorageError
   */
  create(userId: number, epoch: number, userAgent?: string): Promise<SignedIn | 'user_inactive'>
  /**
   * Calls `change`, which ends all previous sessions. Issues the first token pair of a new session in the same
   * transaction.
   * @param change makes the change and calls `open` in its transaction; returns the changed user, or undefined if
   *   nothing was changed
   */
  createWith(
    userId: number,
    userAgent: string | undefined,
    change: (open: (tx: Queryable, epoch: number) => Promise<void>) => Promise<SessionOwner | undefined>,
  ): Promise<SignedIn | undefined>
  /**
   * Issues the first token pair of a new session, in a transaction that has locked the user.
   * @throws Refusal `credentials_invalid` if the user is inactive; StorageError
   */
  open(tx: Queryable, user: UserWithEpoch, userAgent: string | undefined): Promise<SignedIn>
  /**
   * Exchanges a refresh token for a new pair. Each refresh token works once.
   * @throws Refusal `refresh_token_missing`, `refresh_token_invalid`, `refresh_token_inactive`, `user_not_found`;
   *   `service_unavailable` while a logout cannot be stored; StorageError
   */
  refresh(rawToken: string): Promise<SignedIn>
  /**
   * Ends the session of a refresh token, even if the token is expired or revoked. Never fails.
   * @returns the id of the owner; undefined if no session was ended, or if the store failed
   */
  logout(rawToken: string): Promise<number | undefined>
}

interface Dependencies {
  store: SessionStore
  tokens: Tokens
  pendingRevocations: PendingRevocations
  clock: Clock
  /** `auth.refresh_reuse`. */
  reuse: 'reject' | 'revoke_all'
  /**
   * Resolves when every process refuses the access tokens of ended sessions. If `auth.logout_ends_access` is off, it
   * resolves immediately.
   */
  accessEnded(): Promise<void>
  /** The maximum age of a session after the login, in milliseconds (`auth.session_max`). 0 means no limit. */
  sessionMaxMs: number
}

export function createSessions(dependencies: Dependencies): Sessions {
  const { store, tokens, pendingRevocations, clock, reuse, accessEnded, sessionMaxMs } = dependencies

  const sessionOf = (id: string, createdAtMs: number): TokenSession => ({
    id,
    endsAtMs: sessionMaxMs === 0 ? Number.POSITIVE_INFINITY : createdAtMs + sessionMaxMs,
  })

  async function newRefreshToken(
    userId: number,
    session: TokenSession,
  ): Promise<{ raw: string; stored: NewRefreshToken }> {
    const { token, expiresAt } = await tokens.issueRefresh(userId, session)
    return { raw: token, stored: { tokenHash: sha256Hex(token), expiresAt, sessionId: session.id } }
  }

  async function tokenPair(
    user: { id: number; email: string; plan: Plan },
    session: TokenSession,
    refresh: string,
  ): Promise<SignedIn> {
    const access = await tokens.issueAccess(user, session)
    const { id: userId, plan } = user
    return { access_token: access, refresh_token: refresh, token_type: 'Bearer', plan, userId }
  }

  async function newSession(userId: number, userAgent = '') {
    const now = clock.now()
    const session = sessionOf(randomUUID(), now)
    return {
      session,
      token: await newRefreshToken(userId, session),
      origin: { createdAt: new Date(now), userAgent: readableUserAgent(userAgent) },
    }
  }

  async function flushPendingRevocations({ sessionId }: VerifiedToken): Promise<void> {
    if (!pendingRevocations.isHolding(sessionId)) return
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(serviceUnavailable()), flushTimeoutMs)
    })
    try {
      await Promise.race([pendingRevocations.flush(), timeout])
    } catch (error) {
      throw serviceUnavailable(error)
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Returns the session of the token. The record of the token is read only if the token has no session id, or if
   * `auth.session_max` limits sessions. If this record is missing, the result is undefined.
   */
  async function sessionBehind(
    presented: { userId: number; tokenHash: string },
    { sessionId }: VerifiedToken,
  ): Promise<TokenSession | undefined> {
    if (sessionId !== undefined && sessionMaxMs === 0) return sessionOf(sessionId, 0)
    const record = await store.findSession(presented)
    return record && sessionOf(sessionId ?? record.id, record.created_at.getTime())
  }

  /**
   * Queues a logout if the store has failed. The token is verified only with the keys in memory. If the token's key is
   * not among them, the token is queued only while the queue has room.
   */
  async function queueRevocation(raw: string, tokenHash: string): Promise<never[]> {
    const verified = await tokens.verifyRefreshOffline(raw)
    if (verified === 'key_unknown') pendingRevocations.add(tokenHash, false)
    else if (typeof verified !== 'string') pendingRevocations.add(tokenHash, true, verified.sessionId)
    return []
  }

  async function revokeAllIfReused(verified: VerifiedToken, rotatedAt: Date | null): Promise<void> {
    if (reuse === 'reject' || !(await isReuse(verified, rotatedAt))) return
    await store.revokeAll(verified.userId)
    await accessEnded()
  }

  // A second use of a token soon after its rotation does not count as theft. For example, two browser tabs use the same
  // token, or a client did not receive the response. A later second use counts as theft. After a day, the record of a
  // rotated token is deleted. A token that is older than a day and has no record therefore also counts as reused, but
  // only if its session is still active.
  async function isReuse(
    { userId, sessionId, issuedAtMs }: VerifiedToken,
    rotatedAt: Date | null,
  ): Promise<boolean> {
    const now = clock.now()
    if (rotatedAt !== null) return now - rotatedAt.getTime() > reuseGraceMs
    if (sessionId === undefined || now - issuedAtMs <= rotatedRecordTtlMs) return false
    return store.isLive(userId, sessionId, new Date(now))
  }

  return {
    async create(userId, epoch, userAgent) {
      const { session, token, origin } = await newSession(userId, userAgent)
      const owner = await store.create(userId, epoch, token.stored, origin)
      return owner === 'user_inactive' ? owner : tokenPair({ id: userId, ...owner }, session, token.raw)
    },

    async createWith(userId, userAgent, change) {
      const { session, token, origin } = await newSession(userId, userAgent)
      const owner = await change(async (tx, epoch) => {
        await insertSession(tx, userId, epoch, token.stored, origin)
      })
      return owner && tokenPair({ id: userId, email: owner.email, plan: owner.plan }, session, token.raw)
    },

    async open(tx, { id, session_epoch: epoch }, userAgent) {
      const { session, token, origin } = await newSession(id, userAgent)
      const owner = await insertSession(tx, id, epoch, token.stored, origin)
      if (owner === 'user_inactive') throw new Refusal('credentials_invalid')
      return tokenPair({ id, ...owner }, session, token.raw)
    },

    async refresh(rawToken) {
      const raw = rawToken.trim()
      if (raw === '') throw new Refusal('refresh_token_missing')
      const verified = await tokens.verifyRefresh(raw)
      if (typeof verified === 'string') throw new Refusal('refresh_token_invalid', { reason: verified })
      await flushPendingRevocations(verified)
      const { userId } = verified
      const presented = { userId, tokenHash: sha256Hex(raw) }
      const session = await sessionBehind(presented, verified)
      if (session === undefined) await revokeAllIfReused(verified, null)
      if (session === undefined || session.endsAtMs <= clock.now())
        throw new Refusal('refresh_token_inactive', { reason: 'session_ended' })
      const successor = await newRefreshToken(userId, session)
      const rotation = await store.rotate(presented, successor.stored, new Date(clock.now()))
      if (rotation.outcome === 'user_inactive') throw new Refusal('user_not_found')
      if (rotation.outcome === 'inactive') {
        await revokeAllIfReused(verified, rotation.rotatedAt)
        const reason = rotation.rotatedAt === null ? 'session_ended' : 'used'
        throw new Refusal('refresh_token_inactive', { reason })
      }
      return tokenPair({ id: userId, email: rotation.email, plan: rotation.plan }, session, successor.raw)
    },

    async logout(rawToken) {
      const raw = rawToken.trim()
      if (raw === '') return undefined
      const tokenHash = sha256Hex(raw)
      const [owner] = await store.revoke([tokenHash]).catch(() => queueRevocation(raw, tokenHash))
      if (owner !== undefined) await accessEnded()
      return owner
    },
  }
}

/** Removes control characters and keeps at most 200 characters. Null if nothing is left. */
function readableUserAgent(text: string): string | null {
  const readable = text.replace(/\p{Cc}/gu, '').slice(0, 200)
  return readable === '' ? null : readable
}

/** A second use of a token within this time after its rotation does not count as theft. */
const reuseGraceMs = 10_000

/**
 * The maximum time that a refresh waits for pending logouts. It is short, because the whole response must be sent
 * within 2 s.
 */
const flushTimeoutMs = 500
