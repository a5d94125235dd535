// Stores each mail in the same transaction as the change that causes the mail. A worker sends the mail later, so no
// request waits for an SMTP server.
import type { Clock } from '../clock.ts'
import { isMailbox } from '../config/formats/mailbox.ts'
import type { Queryable } from '../storage/database.ts'
import type { CodeKind, NoticeKind } from './mail-kind.ts'
import { insertMail } from './mail-store.ts'

interface MailTo {
  readonly userId: number
  /** The only recipient. */
  readonly address: string
}

export type NewMail =
  | (MailTo & { readonly kind: NoticeKind })
  | (MailTo & { readonly kind: CodeKind; readonly codeId: string; readonly expiresAt: Date })

export interface MailQueue {
  /**
   * Stores one mail, even if no mail server is configured. Stores nothing if the address is not exactly one mailbox
   * (RFC 5321). Call `wake` after the transaction is committed.
   * @throws StorageError
   */
  add(tx: Queryable, mail: NewMail): Promise<void>
  /**
   * Call this after the commit. If this process has a mail worker, the worker sends the mails now. Otherwise, the
   * worker of another process sends them within one second.
   */
  wake(): void
  /** Makes `wake` call `listener`. @returns a function that removes the listener */
  onWake(listener: () => void): () => void
}

const maxAgeMs = 24 * 60 * 60_000

export function createMailQueue(clock: Clock): MailQueue {
  const listeners = new Set<() => void>()
  return {
    async add(tx, mail) {
      if (!isMailbox(mail.address)) return
      const now = new Date(clock.now())
      const givenUpAt = new Date(now.getTime() + maxAgeMs)
      const isCode = 'codeId' in mail
      const expiresAt = isCode && mail.expiresAt < givenUpAt ? mail.expiresAt : givenUpAt
      const { userId, kind, address } = mail
      await insertMail(tx, { userId, kind, address, codeId: isCode ? mail.codeId : null, expiresAt, now })
    },
    wake() {
      for (const listener of listeners) listener()
    },
    onWake(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
