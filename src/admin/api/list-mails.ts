// Lists the mails to users, without the text of the mails.
import { mailKinds } from '../../mail/mail-kind.ts'
import type { MailStatus } from '../../mail/mail-store.ts'
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import { type AdminDependencies, type AdminEndpoint, operatorRefusals } from './admin-endpoint.ts'
import { readOneOf, readPage } from './input.ts'

const statuses = ['pending', 'sent', 'failed'] as const satisfies MailStatus[]

const status = terms.oneOf(statuses, 'The status of the mail.')

const mail = terms.record(
  {
    id: terms.id('The ID of the mail.'),
    user_id: terms.id('The user who receives the mail.'),
    kind: terms.oneOf(
      mailKinds,
      'The kind of mail. `reset`, `verify` and `email` contain a code. All other kinds are notices.',
    ),
    address: terms.text('The email address of the receiver.'),
    status,
    attempts: terms.count('The number of attempts so far.'),
    created_at: terms.instant('The time at which the mail was queued.'),
    due_at: terms.nullable(
      terms.instant('The due time of the next attempt. `null` if the mail is not pending.'),
    ),
    sent_at: terms.nullable(
      terms.instant('The time at which the SMTP server accepted the mail. `null` if the mail is not sent.'),
    ),
  },
  { title: 'Mail', description: 'A mail to one user.' },
)

export const listMails = {
  method: 'GET',
  path: '/admin/v1/mails',
  id: 'listMails',
  summary: 'Lists mails to users, newest first',
  caller: 'operator',
  roles: ['read', 'support'],
  query: terms.record({
    user_id: Type.Optional(terms.id('Only mails to this user.')),
    status: Type.Optional(status),
    cursor: terms.cursor,
  }),
  responses: {
    200: {
      description: 'At most 100 mails.',
      body: terms.record({ mails: Type.Array(mail), next_cursor: terms.nextCursor }),
    },
  },
  refusals: mergeRefusals(operatorRefusals, { 400: ['request_invalid'] }),
} as const satisfies Operation

export function createMailLog({ mails }: AdminDependencies): AdminEndpoint {
  return {
    operation: listMails,
    async handle({ query }) {
      const status = readOneOf(statuses, query.status)
      const [page, next_cursor] = await readPage(query, range => mails.list({ ...range, status }))
      return { mails: page, next_cursor }
    },
  }
}
