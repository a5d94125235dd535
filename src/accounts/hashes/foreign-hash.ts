// Checks the password hashes of other systems before they are stored.
import { isWithinArgon2Limits } from './argon2.ts'
import { decodeBase64 } from './decode.ts'
import { type ForeignFormat, foreignFormats, isHashLength, isSaltLength } from './foreign-formats.ts'

/** The stored hash of a user without a password. No password matches it. */
export const noHash = '!'

export type HashFormat = 'argon2id' | 'argon2i' | ForeignFormat

/**
 * Checks a password hash of another system.
 * @returns the hash to store, or `problem` if the hash is refused. `problem` contains the reason and the accepted
 *   values, but no part of the hash.
 */
export function readForeignHash(text: string): { hash: string; format: HashFormat } | { problem: string } {
  if (text === '' || text === noHash)
    return { problem: 'This is not a hash. Omit password_hash to import the user without a hash.' }
  if (argon2Start.test(text)) return readArgon2(text)
  const rule = foreignFormats.find(({ start }) => start.test(text))
  if (rule === undefined) return { problem: refusalOf(text) }
  const parts = rule.pattern.exec(text)?.groups
  if (parts === undefined)
    return { problem: `This ${rule.name} hash does not have the accepted form ${rule.form}.` }
  const found = rule.read(parts)
  if (found === undefined)
    return { problem: `This ${rule.name} hash is not within the limits. ${rule.limits}` }
  return { hash: text, format: found.format }
}

/** Django writes `argon2` before the PHC string. */
const argon2Start = /^(?:argon2)?\$argon2/

const argon2Hash =
  /^(?:argon2)?\$argon2(?<type>id?)\$v=19\$m=(?<m>[1-9]\d{0,9}),t=(?<t>[1-9]\d{0,9}),p=(?<p>[1-9]\d{0,9})\$(?<salt>[^$]+)\$(?<hash>[^$]+)$/

/** Returns the PHC string in standard base64 without padding, because logins can check only this form. */
function readArgon2(text: string): ReturnType<typeof readForeignHash> {
  const parts = argon2Hash.exec(text)?.groups
  if (parts === undefined) {
    return {
      problem:
        'This Argon2 hash does not have the accepted form $argon2id$v=19$m=M,t=T,p=P$SALT$HASH or $argon2i$v=19$m=M,t=T,p=P$SALT$HASH.',
    }
  }
  const { type, m, t, p } = parts
  const salt = decodeBase64(parts.salt ?? '', 'passlib')
  const hash = decodeBase64(parts.hash ?? '', 'passlib')
  const [memoryKiB, passes, lanes] = [Number(m), Number(t), Number(p)]
  // RFC 9106 §3.1 requires 8 KiB of memory for each lane. The library refuses salts of fewer than 8 bytes.
  const isComputable = memoryKiB >= 8 * lanes && isWithinArgon2Limits({ memoryKiB, passes, lanes })
  if (!isComputable || !salt || !isSaltLength(salt, 8) || !hash || !isHashLength(hash)) {
    return {
      problem:
        'This Argon2 hash is not within the limits. The memory must be at least 8 KiB for each lane, and at most 256 MiB. At most 16 lanes are allowed. Memory times passes must be at most 1 GiB. The salt must have 8 to 64 bytes, and the hash 16 to 64 bytes.',
    }
  }
  const [encodedSalt, encodedHash] = [salt, hash].map(bytes => bytes.toString('base64').replaceAll('=', ''))
  return {
    hash: `$argon2${type}$v=19$m=${m},t=${t},p=${p}$${encodedSalt}$${encodedHash}`,
    format: type === 'id' ? 'argon2id' : 'argon2i',
  }
}

/** Returns why a text is refused. The reason contains the name of the format, if the format is known. */
function refusalOf(text: string): string {
  const weak = tooWeak.find(([, pattern]) => pattern.test(text))
  if (weak !== undefined) return `${weak[0]} is too weak to keep. Import the user without a hash.`
  const other = notAccepted.find(([, pattern]) => pattern.test(text))
  const name =
    other === undefined
      ? 'The format of this hash is unknown. A password in plain text is too weak to keep'
      : `${other[0]} is not accepted`
  return `${name}. The accepted formats are Argon2, bcrypt, PBKDF2, scrypt and Firebase scrypt. Import the user without a hash.`
}

const tooWeak: readonly (readonly [string, RegExp])[] = [
  ['Salted SHA (SSHA)', /^\{ssha\d*\}/i],
  ['MD5', /^(?:[\da-f]{32}$|\$(?:1|apr1|md5|md5-crypt|P|H)\$|(?:unsalted_)?md5\$|\{s?md5\})/i],
  ['SHA-1', /^(?:\*?[\da-f]{40}$|\$?(?:unsalted_)?sha1\$|\{sha1?\})/i],
  [
    'SHA-2',
    /^(?:[\da-f]{56}$|[\da-f]{64}$|[\da-f]{96}$|[\da-f]{128}$|\$?sha(?:224|256|384|512)\$|\{sha\d+\})/i,
  ],
  ['Plain text', /^[^$:{]*$/],
]

const notAccepted: readonly (readonly [string, RegExp])[] = [
  ['bcrypt with the prefix $2x$, which marks hashes of a faulty program,', /^\$2x\$/],
  ['bcrypt over SHA-256', /^(?:\$bcrypt-sha256|bcrypt_sha256)\$/],
  ['bcrypt with the prefix of Django', /^bcrypt\$/],
  ['PBKDF2 with this hash function or in this form', /^(?:\$pbkdf2|pbkdf2)/],
  ['scrypt in this form', /^(?:scrypt|\$7\$)/],
  ['Firebase scrypt in the form of Ory', /^\$firescrypt\$/],
  ['SHA-256-crypt', /^\$(?:5|sha256-crypt)\$/],
  ['SHA-512-crypt', /^\$(?:6|sha512-crypt)\$/],
  ['yescrypt', /^\$(?:y|gy)\$/],
]
