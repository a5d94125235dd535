// Builds the account services on a database, with a clock that tests advance.
import { type Accounts, createAccounts } from '../../src/accounts/accounts.ts'
import { createPasswords } from '../../src/accounts/password.ts'
import { newPasswordValidator } from '../../src/accounts/password-rules.ts'
import { createPendingRevocations, type PendingRevocations } from '../../src/accounts/pending-revocations.ts'
import type { Session } from '../../src/accounts/session-list.ts'
import { createSessionStore, type SessionStore } from '../../src/accounts/session-store.ts'
import { createSessions, type Sessions } from '../../src/accounts/sessions.ts'
import type { Clock } from '../../src/clock.ts'
import { createKeyStore } from '../../src/identity/keys/key-store.ts'
import { openSigningKeys } from '../../src/identity/keys/signing-keys.ts'
import { createTokens, type Tokens } from '../../src/identity/tokens/tokens.ts'
import { Refusal } from '../../src/refusals/refusal.ts'
import type { Database } from '../../src/storage/database.ts'
import { createUserStore, type UserStore } from '../../src/users/user-store.ts'

export interface MovableClock extends Clock {
  advance(milliseconds: number): void
}

export function movableClock(): MovableClock {
  let now = Date.now()
  return {
    now: () => now,
    advance(milliseconds) {
      now += milliseconds
    },
  }
}

export interface Room {
  database: Database
  clock: MovableClock
  users: UserStore
  store: SessionStore
  tokens: Tokens
  pendingRevocations: PendingRevocations
  sessions: Sessions
  accounts: Accounts
  activeSessions(userId: number): Promise<Session[]>
  /** Creates a user with `password`. @returns the user's id */
  register(email: string): Promise<number>
}

export interface RoomOptions {
  reuse?: 'reject' | 'revoke_all'
  sessionMaxMs?: number
  hashing?: { concurrency: number; queue: number; wait: number }
}

export const password = 'un mot de passe'
/** A hash of `password`. To make tests fast, its cost is only 1/40 of the usual cost. */
const passwordHash =
  '$argon2id$v=19$m=1024,t=1,p=1$0+PrgspImn4JVckUVgjpQQ$MWm2tlQJlVx3vu7j+5nNoHJPEngwP2i90ZStsvqIu/M'
export const day = 24 * 60 * 60_000

export async function openRoom(database: Database, options: RoomOptions = {}): Promise<Room> {
  const clock = movableClock()
  const onError = () => {}
  const keys = await openSigningKeys({ store: createKeyStore(database), sealer: undefined, clock, onError })
  const tokens = createTokens({
    keys,
    clock,
    issuer: 'peage',
    audience: 'peage',
    accessTokenTtlMs: 15 * 60_000,
    refreshTokenTtlMs: 30 * day,
  })
  const users = createUserStore(database)
  const store = createSessionStore(database)
  const pendingRevocations = createPendingRevocations({ store, changesVisible: async () => {}, onError })
  const sessions = createSessions({
    store,
    tokens,
    pendingRevocations,
    clock,
    reuse: options.reuse ?? 'reject',
    accessEnded: async () => {},
    sessionMaxMs: options.sessionMaxMs ?? 0,
  })
  const passwords = createPasswords(options.hashing ?? { concurrency: 2, queue: 64, wait: 5_000 })
  const validateNewPassword = newPasswordValidator('allow')
  const accounts = createAccounts({ users, firstPlan: 'free', passwords, validateNewPassword, sessions })
  return {
    database,
    clock,
    users,
    store,
    tokens,
    pendingRevocations,
    sessions,
    accounts,
    activeSessions: userId => store.list(userId, new Date(clock.now())),
    async register(email) {
      const created = await users.create(email, passwordHash)
      if (created.outcome !== 'created') throw new Error(`${email} is already in use`)
      return created.id
    },
  }
}

/** Returns `ok` if the call succeeds, and the error code if it fails with a `Refusal`. Rethrows other errors. */
export async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'ok'
  } catch (error) {
    if (error instanceof Refusal) return error.code
    throw error
  }
}

/** Returns how often each outcome occurs. */
export function tally(outcomes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of outcomes) counts[one] = (counts[one] ?? 0) + 1
  return counts
}
