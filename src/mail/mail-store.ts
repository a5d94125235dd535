// The records of mails: stored with what they tell.
import type { Queryable } from '../storage/database.ts'
import type { MailKind } from './mail-kind.ts'

interface MailRow {
  readonly userId: number
  readonly kind: MailKind
  readonly address: string
  readonly codeId: string | null
  readonly expiresAt: Date
  readonly now: Date
}

/** Stores a mail that is due at once. @throws StorageError */
export async function insertMail(
  tx: Queryable,
  { userId, kind, address, codeId, expiresAt, now }: MailRow,
): Promise<void> {
  await tx.query(
    `insert into mails (user_id, kind, address, code_id, due_at, expires_at, created_at)
     values ($1, $2, $3, $4, $5, $6, $5)`,
    [userId, kind, address, codeId, now, expiresAt],
  )
}
