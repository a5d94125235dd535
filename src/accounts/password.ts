// Hashes and verifies passwords. For an unknown email, the check takes as long as for a wrong password.
import { randomBytes } from 'node:crypto'
import argon2 from 'argon2'
import { createSemaphore, type SemaphoreOptions } from '../async/semaphore.ts'
import type { RefusalCode } from '../refusals/catalog.ts'
import { serviceUnavailable } from '../refusals/refusal.ts'
import { isComputableArgon2, isStrongArgon2, newHashCost } from './hashes/argon2.ts'
import { findForeignHash } from './hashes/foreign-formats.ts'

export interface Passwords {
  /**
   * Returns the hash of the password as a PHC string. The password is hashed exactly as given.
   * @throws Refusal `service_unavailable` if the hashing queue is full
   */
  hash(password: string): Promise<string>
  /**
   * Returns whether the password matches the hash. False if there is no hash, if the password is too long, or if it
   * contains a lone surrogate. In all cases, the check takes the same time, because the response time must not reveal
   * which emails have accounts. Only a check of another system's hash can take more or less time, as its parameters
   * require.
   * @throws Refusal `service_unavailable` if the hashing queue is full
   */
  verify(hash: string | undefined, password: string): Promise<boolean>
  /**
   * Returns a new hash of a password that matches the given hash.
   * @returns undefined if the given hash is already strong, or if the maximum number of passwords is being hashed
   */
  strengthen(hash: string, password: string): Promise<string | undefined>
}

const argon2Options = { type: argon2.argon2id, ...newHashCost } as const

export function createPasswords(options: SemaphoreOptions): Passwords {
  const semaphore = createSemaphore(options, serviceUnavailable)

  async function compare(hash: string | undefined, password: string): Promise<boolean> {
    const isComparable = password.isWellFormed() && passwordRefusal(password) !== 'password_too_long'
    if (isComparable && hash !== undefined) {
      if (isComputableArgon2(hash)) {
        try {
          return await argon2.verify(hash, password)
        } catch {
          // The library refused the hash, for example because of a short salt. The result is the same as for a wrong
          // password.
        }
      }
      const foreign = findForeignHash(hash)
      if (foreign !== undefined) return foreign.matches(password)
    }
    await argon2.verify(dummyHash, '')
    return false
  }

  return {
    hash: password => semaphore.run(() => argon2.hash(password, argon2Options)),
    verify: (hash, password) => semaphore.run(() => compare(hash, password)),
    strengthen: async (hash, password) =>
      isStrongArgon2(hash) ? undefined : semaphore.runIfFree(() => argon2.hash(password, argon2Options)),
  }
}

/**
 * The hash that is checked if there is no real hash, so that the check always takes the same time. It is random, and no
 * password matches it.
 */
const dummyHash = [
  '$argon2id$v=19',
  `m=${argon2Options.memoryCost},t=${argon2Options.timeCost},p=${argon2Options.parallelism}`,
  unpaddedBase64(randomBytes(16)),
  unpaddedBase64(randomBytes(32)),
].join('$')

/** PHC strings use base64 without padding. */
function unpaddedBase64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

/**
 * Returns the reason why this password is not allowed. Undefined if the password is allowed. The allowed length is 8 to
 * 1,024 code points. A password with a lone surrogate is refused as too short, because other passwords have the same
 * UTF-8 bytes.
 */
export function passwordRefusal(
  password: string,
): Extract<RefusalCode, 'password_too_short' | 'password_too_long'> | undefined {
  const length = Array.from(password).length
  if (length < 8 || !password.isWellFormed()) return 'password_too_short'
  return length > 1024 ? 'password_too_long' : undefined
}
