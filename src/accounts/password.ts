// Passwords: the length rules, hashing, and a check that takes as long for an unknown email as for a wrong password.
import { randomBytes } from 'node:crypto'
import argon2 from 'argon2'
import { createSemaphore, type SemaphoreOptions } from '../async/semaphore.ts'
import type { RefusalCode } from '../refusals/catalog.ts'
import { serviceUnavailable } from '../refusals/refusal.ts'

export interface Passwords {
  /**
   * The PHC string of a password that `passwordRefusal` accepts, hashed as given.
   * @throws Refusal `service_unavailable` when the hashing queue is full
   */
  hash(password: string): Promise<string>
  /**
   * Whether the password matches the hash. Without a hash, or with a password that no account can have, returns false
   * after the same work as for a wrong password: the response time must not reveal which emails have accounts.
   * @throws Refusal `service_unavailable` when the hashing queue is full
   */
  verify(hash: string | undefined, password: string): Promise<boolean>
}

/** Argon2id at OWASP's minimum: 19 MiB, two passes, one lane (CONTRACT §3). */
const argon2Options = { type: argon2.argon2id, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

export function createPasswords(options: SemaphoreOptions): Passwords {
  const semaphore = createSemaphore(options, serviceUnavailable)

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

/** To compare with it takes as long as with any account's hash. Of no password: nothing had to be hashed for it. */
const dummyHash = [
  '$argon2id$v=19',
  `m=${argon2Options.memoryCost},t=${argon2Options.timeCost},p=${argon2Options.parallelism}`,
  unpaddedBase64(randomBytes(16)),
  unpaddedBase64(randomBytes(32)),
].join('$')

/** As PHC strings have it. */
function unpaddedBase64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

/**
 * Why an account cannot have this password, or undefined. The length is 8 to 1,024 code points. A password with a
 * lone surrogate counts as too short, because other passwords encode to the same bytes (spec §4, CONTRACT §3).
 */
export function passwordRefusal(
  password: string,
): Extract<RefusalCode, 'password_too_short' | 'password_too_long'> | undefined {
  const length = Array.from(password).length
  if (length < 8 || !password.isWellFormed()) return 'password_too_short'
  return length > 1024 ? 'password_too_long' : undefined
}

// A hash of another algorithm, stored by another program, matches no password and is not the client's error.
function isArgon2(hash: string): boolean {
  return /^\$argon2(id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/.test(hash)
}
