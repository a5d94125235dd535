// Hashes and verifies passwords. The check takes as long for an unknown email as for a wrong password.
import { randomBytes } from 'node:crypto'
import argon2 from 'argon2'
import { createSemaphore, type SemaphoreOptions } from '../async/semaphore.ts'
import type { RefusalCode } from '../refusals/catalog.ts'
import { serviceUnavailable } from '../refusals/refusal.ts'

export interface Passwords {
  /**
   * Returns the hash of the password as a PHC string. The password is hashed exactly as given.
   * @throws Refusal `service_unavailable` if the queue is full
   */
  hash(password: string): Promise<string>
  /**
   * Whether the password matches the hash. Returns false if there is no hash, or if no account can have the password.
   * The work is always the same, because the response time must not reveal which emails have accounts.
   * @throws Refusal `service_unavailable` if the hashing queue is full
   */
  verify(hash: string | undefined, password: string): Promise<boolean>
}

/** Argon2id with OWASP's minimum: 19 MiB, two passes, one lane. */
const argon2Options = { type: argon2.argon2id, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

export function createPasswords(options: SemaphoreOptions): Passwords {
  const semaphore = createSemaphore(options, serviceUnavailable)

  async function compare(hash: string | undefined, password: string): Promise<boolean> {
    const isComparable = password.isWellFormed() && passwordRefusal(password) !== 'password_too_long'
    if (isComparable && hash !== undefined && isComputable(hash)) {
      try {
        return await argon2.verify(hash, password)
      } catch {
        // The library refused the hash, for example because of a short salt. The result is the same as for a wrong
        // password.
      }
    }
    await argon2.verify(dummyHash, '')
    return false
  }

  return {
    hash: password => semaphore.run(() => argon2.hash(password, argon2Options)),
    verify: (hash, password) => semaphore.run(() => compare(hash, password)),
  }
}

/**
 * The hash that is checked if there is no real hash, so that the check always takes the same time. It is random and
 * belongs to no password.
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
 * Returns the reason why an account cannot have this password, or undefined if an account can have it. The allowed
 * length is 8 to 1,024 code points. A password with a lone surrogate counts as too short, because other
 * passwords have the same bytes.
 */
export function passwordRefusal(
  password: string,
): Extract<RefusalCode, 'password_too_short' | 'password_too_long'> | undefined {
  const length = Array.from(password).length
  if (length < 8 || !password.isWellFormed()) return 'password_too_short'
  return length > 1024 ? 'password_too_long' : undefined
}

/**
 * The limits for the parameters of a stored hash. They are needed because another program may have stored the hash, and
 * without limits, one login could use all memory.
 */
const maxMemoryKiB = 256 * 1024
const maxLanes = 16
/** Maximum product of memory and passes. At this limit, a check takes about 2 s on one core. */
const maxWorkKiB = 1024 * 1024

/** Whether a stored hash uses Argon2 within the limits. Any other hash matches no password. */
function isComputable(hash: string): boolean {
  const parameters =
    /^\$argon2(?:id|i|d)\$v=(?:16|19)\$m=(\d+),t=(\d+),p=(\d+)\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/.exec(hash)
  if (parameters === null) return false
  const [memory = 0, passes = 0, lanes = 0] = parameters.slice(1).map(Number)
  return memory <= maxMemoryKiB && lanes <= maxLanes && memory * passes <= maxWorkKiB
}
