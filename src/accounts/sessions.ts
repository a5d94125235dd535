// Sessions: a token pair opened at login, rotated at refresh, ended at logout (spec §3, §4; CONTRACT §3).
import type { Clock } from '../clock.ts'
import { sha256Hex } from '../identity/token-hash.ts'
import type { Tokens } from '../identity/tokens/tokens.ts'
import { Refusal, serviceUnavailable } from '../refusals/refusal.ts'
import type { Plan } from '../users/user.ts'
import type { PendingRevocations } from './pending-revocations.ts'
import type { NewRefreshToken, Session, SessionStore } from './session-store.ts'

/** The answer of login and refresh (spec §2). */
export interface TokenPair {
  access_token: string
  refresh_token: string
  token_type: 'Bearer'
  plan: Plan
}

/** A pair, and whose it is: that is for the log, and no part of the answer. */
export interface SignedIn extends TokenPair {
  userId: number
}

export interface Sessions {
  /**
   * A first pair for a user whose password was right. `epoch` is the one read with the password's hash.
   * @throws StorageError
   */
  create(userId: number, epoch: number): Promise<SignedIn | 'user_inactive'>
  /**
   * Exchanges a refresh token, once (spec §4, refresh).
   * @throws Refusal by the spec's rules 1 to 4; `service_unavailable` while a logout cannot be stored
   * @throws StorageError
   */
  refresh(rawToken: string): Promise<SignedIn>
  /**
   * Revokes a refresh token whatever its state; never fails (spec §4, logout).
   * @returns whose it was; nothing where it was none that could be used, or the store cannot tell
   */
  logout(rawToken: string): Promise<number | undefined>
  /**
   * Ends every session of a user, those being rotated included. Whether there is such a user.
   * @throws StorageError
   */
  revokeAll(userId: number): Promise<boolean>
  /**
   * The user's active sessions.
   * @throws StorageError
   */
  list(userId: number): Promise<Session[]>
}

interface Dependencies {
  store: SessionStore
  tokens: Tokens
  pendingRevocations: PendingRevocations
  clock: Clock
  /** `auth.refresh_reuse`. */
  reuse: 'reject' | 'revoke_all'
}

export function createSessions({ store, tokens, pendingRevocations, clock, reuse }: Dependencies): Sessions {
  async function newRefreshToken(userId: number): Promise<{ raw: string; stored: NewRefreshToken }> {
    const { token, expiresAt } = await tokens.issueRefresh(userId)
    return { raw: token, stored: { tokenHash: sha256Hex(token), expiresAt } }
  }

  async function tokenPair(
    user: { id: number; email: string; plan: Plan },
    refresh: string,
  ): Promise<SignedIn> {
    const access = await tokens.issueAccess(user)
    const { id: userId, plan } = user
    return { access_token: access, refresh_token: refresh, token_type: 'Bearer', plan, userId }
  }

  async function flushPendingRevocations(): Promise<void> {
    if (pendingRevocations.count === 0) return
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

  // Two tabs, or a client that never saw its answer, use a token twice within moments; a thief comes later.
  function isReuse(rotatedAt: Date | null): boolean {
    return rotatedAt !== null && clock.now() - rotatedAt.getTime() > reuseGraceMs
  }

  return {
    async create(userId, epoch) {
      const token = await newRefreshToken(userId)
      const owner = await store.create(userId, epoch, token.stored)
      return owner === 'user_inactive' ? owner : tokenPair({ id: userId, ...owner }, token.raw)
    },

    async refresh(rawToken) {
      const raw = rawToken.trim()
      if (raw === '') throw new Refusal('refresh_token_missing')
      const verified = await tokens.verifyRefresh(raw)
      if (verified === 'invalid') throw new Refusal('refresh_token_invalid')
      await flushPendingRevocations()
      const { userId } = verified
      const successor = await newRefreshToken(userId)
      const now = new Date(clock.now())
      const rotation = await store.rotate({ userId, tokenHash: sha256Hex(raw) }, successor.stored, now)
      if (rotation.outcome === 'user_inactive') throw new Refusal('user_not_found')
      if (rotation.outcome === 'inactive') {
        if (reuse === 'revoke_all' && isReuse(rotation.rotatedAt)) await store.revokeAll(userId)
        throw new Refusal('refresh_token_inactive')
      }
      return tokenPair({ id: userId, email: rotation.email, plan: rotation.plan }, successor.raw)
    },

    async logout(rawToken) {
      const raw = rawToken.trim()
      if (raw === '') return undefined
      const tokenHash = sha256Hex(raw)
      try {
        const [owner] = await store.revoke([tokenHash])
        return owner
      } catch {
        // By the keys in memory: the store that could tell more is away. Undecided is kept while there is room.
        const verified = await tokens.verifyRefreshOffline(raw)
        if (verified !== 'invalid') pendingRevocations.add(tokenHash, verified !== 'undecided')
        return undefined
      }
    },

    revokeAll: userId => store.revokeAll(userId),
    list: userId => store.list(userId, new Date(clock.now())),
  }
}

/** Milliseconds after its rotation in which a token's second use is not taken for a theft (CONTRACT §2). */
const reuseGraceMs = 10_000

/** Milliseconds that a refresh waits for logouts to be stored: all of it is answered within 2 s (CONTRACT §4). */
const flushTimeoutMs = 500
