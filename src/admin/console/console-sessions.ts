// Sessions of the console, in the memory of the process that serves the admin listener.
import { hash, randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { Operator, Operators } from '../operators.ts'
import { sessionTtlSeconds } from './cookies.ts'

/** Who is signed in, by the configuration of the moment. */
export interface ConsoleSession {
  readonly operator: Operator
  readonly expiresAt: Date
}

export interface ConsoleSessions {
  /** @returns the cookie's value: 256 random bits, of which only a hash is kept */
  open(operator: Operator): string
  /** Undefined if there is none, it has expired, or no token of the configuration is the one it was opened with. */
  find(value: string): ConsoleSession | undefined
  /** Nothing happens if there is none. */
  close(value: string): void
  /** Call after a reload: a session whose token is gone ends, and does not come back with the token (CONTRACT-2 §13). */
  closeOrphans(): void
}

/** The oldest one ends where there is one more. */
const maxSessions = 10_000

/** @param operators those of the current configuration */
export function createConsoleSessions(operators: () => Operators, clock: Clock): ConsoleSessions {
  /** In the order of their ends. */
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

/** A look-up by the value itself would take a time that tells how much of a guess is right. */
function keyOf(value: string): string {
  return hash('sha256', value, 'base64url')
}
