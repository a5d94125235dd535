// Derives a code and a token from a database row and a secret key. A copy of the row is useless without the key.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { CodeAndToken } from '../../mail/composing/compose.ts'
import type { ReadMailedCode } from '../../mail/mail-worker.ts'
import type { Queryable } from '../../storage/database.ts'
import { type AccountCode, findLiveCode } from './code-issue-store.ts'
import type { CodeKeys } from './code-key-store.ts'

/** Each method throws StorageError if the key must come from the database and cannot be read. */
export interface CodeDerivation {
  codeOf(row: AccountCode): Promise<CodeAndToken>
  isCode(row: AccountCode, presented: string): Promise<boolean>
  isToken(row: AccountCode, presented: string): Promise<boolean>
}

export function createCodeDerivation(keys: CodeKeys): CodeDerivation {
  /** Tries every key, because the code or token may have been derived before `auth.key_secret` was changed. */
  async function matches(presented: string, derive: (key: Buffer) => string): Promise<boolean> {
    let isRight = false
    for (const key of await keys()) isRight = isEqual(presented, derive(key)) || isRight
    return isRight
  }

  return {
    async codeOf(row) {
      const [key] = (await keys()) as [Buffer]
      return { code: deriveCode(key, row), token: deriveToken(key, row) }
    },
    isCode: (row, presented) => matches(presented, key => deriveCode(key, row)),
    isToken: (row, presented) => matches(presented, key => deriveToken(key, row)),
  }
}

/**
 * Returns a function that derives the code for a mail. The gateway calls this function at each attempt to send the
 * mail, because no table contains the code.
 */
export function createReadMailedCode(
  database: Queryable,
  derivation: Pick<CodeDerivation, 'codeOf'>,
): ReadMailedCode {
  return async (id, now) => {
    const row = await findLiveCode(database, id, now)
    return row && { ...(await derivation.codeOf(row)), expiresAt: row.expires_at }
  }
}

/** Returns the row id, which is a part of every token. Undefined if the text does not have the format of a token. */
export function idOfToken(token: string): string | undefined {
  if (!/^[A-Za-z0-9_-]{64}$/.test(token)) return undefined
  const hex = Buffer.from(token, 'base64url').toString('hex', 0, idBytes)
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

const idBytes = 16

/**
 * The code is a 256-bit number modulo 10^8. All codes are almost equally likely: their probabilities differ by less
 * than one part in 10^69.
 */
function deriveCode(key: Buffer, row: AccountCode): string {
  const number = BigInt(`0x${mac(key, 'code', row).toString('hex')}`) % 100_000_000n
  return number.toString().padStart(8, '0')
}

function deriveToken(key: Buffer, row: AccountCode): string {
  const id = Buffer.from(row.id.replaceAll('-', ''), 'hex')
  return Buffer.concat([id, mac(key, 'token', row)]).toString('base64url')
}

/**
 * The result depends on the values of the row that decide what the code allows. If someone alters one of these values
 * in the database, the mailed code no longer matches.
 */
function mac(key: Buffer, kind: 'code' | 'token', row: AccountCode): Buffer {
  const { purpose, id, user_id, email, session_epoch, new_email } = row
  const text = JSON.stringify([kind, purpose, id, user_id, email, session_epoch, new_email])
  return createHmac('sha256', key).update(text).digest()
}

/** Compares two texts of equal length in constant time. The length is not secret. */
function isEqual(presented: string, right: string): boolean {
  const [a, b] = [Buffer.from(presented), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}
