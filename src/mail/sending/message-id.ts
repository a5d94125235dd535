// The Message-ID of a mail.
import { createHash } from 'node:crypto'
import type { Sender } from '../../config/formats/mail.ts'

/** Of the mail's row: the same at every attempt, and nothing in it tells how many mails were sent. */
export function messageIdOf(id: number, createdAt: Date, from: Sender): string {
  const digest = createHash('sha256').update(`${id} ${createdAt.getTime()} ${from.address}`).digest('hex')
  return `<${digest.slice(0, 32)}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`
}
