// Passwords: which are taken, how they are hashed, and a check that takes as long for "unknown" as for "wrong".
import { randomBytes } from 'node:crypto'
import argon2 from 'argon2'
import { createSemaphore, type SemaphoreOptions } from '../async/semaphore.ts'
import type { RefusalCode } from '../refusals/catalog.ts'
import { serviceUnavailable } from '../refusals/refusal.ts'

export interface Passwords {
  /**
   * The PHC string of a password that `passwordRefusal` lets through, hashed as given.
   * @throws Refusal `service_unavailable` when too much hashing is under way
   */
  hash(password: string): Promise<string>
  /**
   * Whether the password is the one that was hashed. Without a hash, and for a password that no account can
   * have, the answer is no after the same work as for a wrong one: the time must not tell who has an account.
   * @throws Refusal `service_unavailable` when too much hashing is under way
   */
  verify(hash: string | undefined, password: string): Promise<boolean>
}

/** Argon2id at OWASP's floor: 19 MiB, two passes, one lane (CONTRACT §3). */
const argon2Options = { type: argon2.argon2id, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

export async function createPasswords(options: SemaphoreOptions): Promise<Passwords> {
  const semaphore = createSemaphore(options, serviceUnavailable)
  // Made now and not at its first use: the first unknown email would otherwise take twice as long.
  const dummyHash = await argon2.hash(randomBytes(32), argon2Options)

  async function compare(hash: string | undefined, password: string): Promise<boolean> {
    const isComparable = password.isWellFormed() && passwordRefusal(password) !== 'password_too_long'
    if (isComparable && hash !== undefined && isArgon2(hash)) return argon2.verify(hash, password)
    await argon2.verify(dummyHash, '')
    return false
  }

  return {
    hash: password => semaphore.run(() => argon2.hash(password, argon2Options)),
    verify: (hash, password) => semaphore.run(() => compare(hash, password)),
  }
}

/**
 * Why a password cannot be an account's, or nothing. Counted in code points, 8 to 1,024; one with a lone
 * surrogate is too short, as its bytes would be those of other passwords too (spec §4, CONTRACT §3).
 */
export function passwordRefusal(
  password: string,
): Extract<RefusalCode, 'password_too_short' | 'password_too_long'> | undefined {
  const length = Array.from(password).length
  if (length < 8 || !password.isWellFormed()) return 'password_too_short'
  return length > 1024 ? 'password_too_long' : undefined
}

// A hash that another program stored and that is not Argon2's is nobody's password, and no fault of the caller.
function isArgon2(hash: string): boolean {
  return /^\$argon2(id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/.test(hash)
}
