// Stores mails to be sent, in the transaction of what they tell; a request never waits for an SMTP server.
import type { Clock } from '../clock.ts'
import { isMailbox } from '../config/formats/mailbox.ts'
import type { Queryable } from '../storage/database.ts'
import type { CodeKind, NoticeKind } from './mail-kind.ts'
import { insertMail } from './mail-store.ts'

interface MailTo {
  readonly userId: number
  /** The one recipient. */
  readonly address: string
}

export type NewMail =
  | (MailTo & { readonly kind: NoticeKind })
  | (MailTo & { readonly kind: CodeKind; readonly codeId: string; readonly expiresAt: Date })

export interface MailQueue {
  /**
   * Stores one mail, whatever the configuration says of its kind. An address that is not one mailbox of RFC 5321 gets
   * none (CONTRACT §12). Call `wake` once it is committed.
   * @throws StorageError
   */
  add(tx: Queryable, mail: NewMail): Promise<void>
  /** Mails were committed: they are sent now, if this process sends them, and otherwise within a second. */
  wake(): void
  /** Has `wake` call `listener`. @returns a function that ends it */
  onWake(listener: () => void): () => void
}

/** No mail is tried for longer (CONTRACT §12). */
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
