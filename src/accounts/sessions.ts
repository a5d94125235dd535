// Sessions: a token pair issued at login, rotated at refresh, revoked at logout (spec §3, §4; CONTRACT §3).
import type { Clock } from '../clock.ts'
import { sha256Hex } from '../identity/token-hash.ts'
import type { Tokens } from '../identity/tokens/tokens.ts'
import { Refusal, serviceUnavailable } from '../refusals/refusal.ts'
import type { Plan } from '../users/user.ts'
import type { PendingRevocations } from './pending-revocations.ts'
import type { NewRefreshToken, SessionStore } from './session-store.ts'

/** The response of login and refresh (spec §2). */
export interface TokenPair {
  access_token: string
  refresh_token: string
  token_type: 'Bearer'
  plan: Plan
}

/** A token pair and its owner; `userId` is for the access log and not part of the response. */
export interface SignedIn extends TokenPair {
  userId: number
}

export interface Sessions {
  /**
   * The first token pair after a correct password. `epoch` was read together with the password's hash.
   * @throws StorageError
   */
  create(userId: number, epoch: number): Promise<SignedIn | 'user_inactive'>
  /**
   * Exchanges a refresh token for a new pair; each token works once (spec §4, refresh).
   * @throws Refusal by rules 1 to 4 of the spec; `service_unavailable` while a logout cannot be stored
   * @throws StorageError
   */
  refresh(rawToken: string): Promise<SignedIn>
  /**
   * Revokes a refresh token whatever its state; never fails (spec §4, logout).
   * @returns the owner; undefined when the token was not usable or the store cannot tell
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

  // Two browser tabs, or a client that lost the response, reuse a token within moments; a thief reuses it later.
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
        // The store is down, so only the keys in memory decide. Undecided tokens are queued while there is room.
        const verified = await tokens.verifyRefreshOffline(raw)
        if (verified !== 'invalid') pendingRevocations.add(tokenHash, verified !== 'undecided')
        return undefined
      }
    },
  }
}

/** A second use of a token this soon after its rotation is not taken for theft (CONTRACT §2). */
const reuseGraceMs = 10_000

/** How long a refresh waits for pending logouts: the whole response is due within 2 s (CONTRACT §4). */
const flushTimeoutMs = 500
