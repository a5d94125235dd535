// Lists the mails to users for operators, without their text.
import { mailKinds } from '../../mail/mail-kind.ts'
import type { MailStatus } from '../../mail/mail-store.ts'
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import { type AdminDependencies, type AdminEndpoint, operatorRefusals } from './admin-endpoint.ts'
import { readOneOf, readPage } from './input.ts'

const statuses = ['pending', 'sent', 'failed'] as const satisfies MailStatus[]

const status = terms.oneOf(statuses, 'How far it is.')

const mail = terms.record(
  {
    id: terms.id('The mail’s id.'),
    user_id: terms.id('Whom it is for.'),
    kind: terms.oneOf(mailKinds, 'With a code: `reset`, `verify`, `email`; the others are notices.'),
    address: terms.text('Where it goes.'),
    status,
    attempts: terms.count('Made so far.'),
    created_at: terms.instant('When it was stored.'),
    due_at: terms.nullable(terms.instant('While it is pending: the next attempt.')),
    sent_at: terms.nullable(terms.instant('When the server took it.')),
  },
  { title: 'Mail', description: 'A mail to one user.' },
)

export const listMails = {
  method: 'GET',
  path: '/admin/v1/mails',
  id: 'listMails',
  summary: 'Lists mails to users, the newest first',
  caller: 'operator',
  roles: ['read', 'support'],
  query: terms.record({
    user_id: Type.Optional(terms.id('Only this user’s.')),
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
