// Keeps the sessions of the console in the memory of the process that serves the admin listener.
import { hash, randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { Operator, Operators } from '../operators.ts'
import { sessionTtlSeconds } from './cookies.ts'

/** A session and its operator. The operator's name and role come from the current configuration. */
export interface ConsoleSession {
  readonly operator: Operator
  readonly expiresAt: Date
}

export interface ConsoleSessions {
  /** @returns the cookie's value, 256 random bits; only a hash of the value is stored */
  open(operator: Operator): string
  /** Returns undefined if the session does not exist or has expired, or if the operator's token was removed. */
  find(value: string): ConsoleSession | undefined
  close(value: string): void
  /**
   * Ends the sessions of operators whose token was removed from the configuration. Call this after a reload. If the
   * token is configured again later, these sessions stay ended.
   */
  closeOrphans(): void
}

/** The maximum number of sessions. When it is reached, the oldest session ends. */
const maxSessions = 10_000

/** @param operators returns the operators of the current configuration */
export function createConsoleSessions(operators: () => Operators, clock: Clock): ConsoleSessions {
  /** The sessions by the hash of their cookie, in the order in which they expire. */
  const sessions = new Map<string, { digest: Buffer; expiresAtMs: number }>()

  function forgetExpired(): void {
    for (const [key, { expiresAtMs }] of sessions) {
      if (expiresAtMs > clock.now() && sessions.size < maxSessions) break
      sessions.delete(key)
    }
  }

  return {
    open({ digest }) {
      forgetExpired()
      const value = randomBytes(32).toString('base64url')
      sessions.set(keyOf(value), { digest, expiresAtMs: clock.now() + sessionTtlSeconds * 1_000 })
      return value
    },
    find(value) {
      const session = sessions.get(keyOf(value))
      if (session === undefined || session.expiresAtMs <= clock.now()) return undefined
      const operator = operators().findByDigest(session.digest)
      return operator && { operator, expiresAt: new Date(session.expiresAtMs) }
    },
    close(value) {
      sessions.delete(keyOf(value))
    },
    closeOrphans() {
      for (const [key, { digest }] of sessions) {
        if (operators().findByDigest(digest) === undefined) sessions.delete(key)
      }
    },
  }
}

/**
 * Sessions are stored by the hash of their cookie. A lookup by the cookie's value itself would be unsafe, because its
 * duration could reveal how much of a guess is correct.
 */
function keyOf(value: string): string {
  return hash('sha256', value, 'base64url')
}
