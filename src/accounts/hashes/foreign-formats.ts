// Reads the password hashes of other systems, except Argon2 hashes. A table defines the form, the limits and the check
// of each format.
import { timingSafeEqual } from 'node:crypto'
import { decodeBase64, decodeBcryptBase64 } from './decode.ts'
import { deriveBcrypt, deriveFirebase, derivePbkdf2, deriveScrypt, type ScryptParameters } from './derive.ts'

export type ForeignFormat = 'bcrypt' | 'pbkdf2_sha256' | 'pbkdf2_sha512' | 'scrypt' | 'fbscrypt'

/** A stored hash. `matches` hashes a password with the same parameters and compares the two hashes. */
interface ForeignHash {
  readonly format: ForeignFormat
  matches(password: string): Promise<boolean>
}

export interface FormatRule {
  /** The name of the format in error messages. */
  readonly name: string
  /**
   * Matches the beginning of a hash of this format. A text with this beginning is a valid hash of this format, or it is
   * refused.
   */
  readonly start: RegExp
  /** The accepted form, for error messages. */
  readonly form: string
  readonly pattern: RegExp
  /** The accepted parameters and lengths, as sentences for error messages. */
  readonly limits: string
  /** @returns undefined if the hash is not within the limits */
  read(parts: Parts): ForeignHash | undefined
}

type Parts = Readonly<Record<string, string | undefined>>

const digest = (bytes: Buffer, derive: (password: string) => Promise<Buffer>, format: ForeignFormat) => ({
  format,
  matches: async (password: string) => timingSafeEqual(await derive(password), bytes),
})

function isBetween(value: number, min: number, max: number): boolean {
  return value >= min && value <= max
}

export function isSaltLength({ length }: Buffer, min = 4): boolean {
  return isBetween(length, min, 64)
}

export function isHashLength({ length }: Buffer): boolean {
  return isBetween(length, 16, 64)
}

const minRounds = 1_000
const maxRounds = 5_000_000
const maxScryptBytes = 256 * 1024 ** 2
const maxScryptWork = 1024 ** 3

function readPbkdf2(
  variant: 'sha256' | 'sha512',
  rounds: number,
  salt: Buffer,
  hash: Buffer,
): ForeignHash | undefined {
  if (!isBetween(rounds, minRounds, maxRounds) || !isSaltLength(salt) || !isHashLength(hash)) return undefined
  return digest(
    hash,
    password => derivePbkdf2(password, salt, rounds, hash.length, variant),
    `pbkdf2_${variant}`,
  )
}

/** @returns undefined if scrypt cannot be computed with these parameters, or if they are outside of the limits */
function readScryptParameters(N: number, { r: blocks, p: lanes }: Parts): ScryptParameters | undefined {
  const [r, p] = [Number(blocks), Number(lanes)]
  // RFC 7914 §2 requires N to be a power of 2, greater than 1 and less than 2^(16·r).
  const log = Math.log2(N)
  if (!Number.isInteger(log) || log < 1 || r < 1 || p < 1 || log >= 16 * r) return undefined
  // The lanes need another 128·r·p bytes in addition to the 128·N·r bytes, so both values are limited.
  if (128 * r * Math.max(N, p) > maxScryptBytes || 128 * N * r * p > maxScryptWork) return undefined
  return { N, r, p }
}

const saltLimits = 'The salt must have 4 to 64 bytes.'
const hashLimits = 'The hash must have 16 to 64 bytes.'
const pbkdf2Limits = `There must be 1,000 to 5,000,000 rounds. ${saltLimits}`
const scryptLimits = `N must be a power of 2. 128·N·r must be at most 256 MiB, and 128·N·r·p at most 1 GiB. ${saltLimits}`

export const foreignFormats: readonly FormatRule[] = [
  {
    name: 'bcrypt',
    start: /^\$2[aby]?\$/,
    form: '$2b$COST$ and 53 characters, with the prefix $2a$, $2b$ or $2y$',
    pattern: /^\$2[aby]\$(?<cost>\d\d)\$(?<salt>[./A-Za-z0-9]{22})(?<hash>[./A-Za-z0-9]{31})$/,
    limits: 'The cost must be 4 to 14.',
    read({ cost, salt = '', hash = '' }) {
      if (!isBetween(Number(cost), 4, 14)) return undefined
      const saltBytes = decodeBcryptBase64(salt)
      const derive = (password: string) => deriveBcrypt(password, saltBytes, Number(cost))
      return digest(decodeBcryptBase64(hash), derive, 'bcrypt')
    },
  },
  {
    name: 'Django PBKDF2',
    start: /^pbkdf2_sha256\$/,
    form: 'pbkdf2_sha256$ROUNDS$SALT$HASH',
    pattern: /^pbkdf2_sha256\$(?<rounds>\d{1,10})\$(?<salt>[^$\p{Cc}\p{Cs}]+)\$(?<hash>[^$]+)$/u,
    limits: `${pbkdf2Limits} The hash must have 32 bytes.`,
    read({ rounds: count, salt = '', hash: text = '' }) {
      const hash = decodeBase64(text, 'passlib')
      if (hash?.length !== 32) return undefined
      return readPbkdf2('sha256', Number(count), Buffer.from(salt), hash)
    },
  },
  {
    name: 'PBKDF2',
    start: /^\$pbkdf2-sha(256|512)\$/,
    form: '$pbkdf2-sha256$ROUNDS$SALT$HASH or $pbkdf2-sha512$ROUNDS$SALT$HASH',
    // Ory writes the rounds and the length of the hash as `i=ROUNDS,l=LENGTH`.
    pattern:
      /^\$pbkdf2-(?<variant>sha256|sha512)\$(?:i=)?(?<rounds>\d{1,10})(?:,l=(?<length>\d{1,4}))?\$(?<salt>[^$]+)\$(?<hash>[^$]+)$/,
    limits: `${pbkdf2Limits} ${hashLimits}`,
    read({ variant, rounds: count, length, salt: saltText = '', hash: text = '' }) {
      const salt = decodeBase64(saltText, 'passlib')
      const hash = decodeBase64(text, 'passlib')
      if (salt === undefined || hash === undefined) return undefined
      if (length !== undefined && Number(length) !== hash.length) return undefined
      return readPbkdf2(variant === 'sha256' ? 'sha256' : 'sha512', Number(count), salt, hash)
    },
  },
  {
    name: 'scrypt',
    start: /^\$scrypt\$/,
    form: '$scrypt$ln=LN,r=R,p=P$SALT$HASH',
    pattern:
      /^\$scrypt\$ln=(?<ln>\d{1,10}),r=(?<r>\d{1,10}),p=(?<p>\d{1,10})\$(?<salt>[^$]+)\$(?<hash>[^$]+)$/,
    limits: `Up to 31, ln is the logarithm of N. From 1,024 on, ln is N. ${scryptLimits} ${hashLimits}`,
    read({ ln, salt: saltText = '', hash: text = '', ...others }) {
      const salt = decodeBase64(saltText, 'passlib')
      const hash = decodeBase64(text, 'passlib')
      const cost = Number(ln)
      // `ln` is the logarithm of N in hashes of passlib, and N itself in hashes of Ory.
      if (cost > 31 && cost < 1024) return undefined
      const parameters = readScryptParameters(cost <= 31 ? 2 ** cost : cost, others)
      if (salt === undefined || hash === undefined || parameters === undefined) return undefined
      if (!isSaltLength(salt) || !isHashLength(hash)) return undefined
      return digest(hash, password => deriveScrypt(password, salt, hash.length, parameters), 'scrypt')
    },
  },
  {
    name: 'Firebase scrypt',
    start: /^\$fbscrypt\$/,
    form: '$fbscrypt$v=1,n=N,r=R,p=P,ss=SEPARATOR,sk=SIGNER_KEY$SALT$HASH',
    pattern:
      /^\$fbscrypt\$v=1,n=(?<n>\d{1,2}),r=(?<r>\d{1,10}),p=(?<p>\d{1,10}),ss=(?<ss>[^,$]+),sk=(?<sk>[^,$]+)\$(?<salt>[^$]+)\$(?<hash>[^$]+)$/,
    limits: `n is the logarithm of N. ${scryptLimits} The separator must have 1 to 64 bytes. The signer key and the hash must have 64 bytes each.`,
    read({ n, ss, sk, salt: saltText, hash: text, ...others }) {
      const [separator, signerKey, salt, hash] = [ss, sk, saltText, text].map(part =>
        decodeBase64(part ?? '', 'firebase'),
      )
      const parameters = readScryptParameters(2 ** Number(n), others)
      if (parameters === undefined || separator === undefined || salt === undefined) return undefined
      if (!isSaltLength(separator, 1) || !isSaltLength(salt)) return undefined
      if (signerKey?.length !== 64 || hash?.length !== 64) return undefined
      const salted = Buffer.concat([salt, separator])
      return digest(hash, password => deriveFirebase(password, salted, signerKey, parameters), 'fbscrypt')
    },
  },
]

/** Reads a stored hash. @returns undefined if no format matches, or if the hash is not within the limits */
export function findForeignHash(text: string): ForeignHash | undefined {
  for (const { pattern, read } of foreignFormats) {
    const parts = pattern.exec(text)?.groups
    if (parts !== undefined) return read(parts)
  }
  return undefined
}
