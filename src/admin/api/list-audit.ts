// The audit log, read-only: no endpoint changes it.
import { Type } from '../../config/schema/type.ts'
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { AuditStore } from '../audit-store.ts'
import { type AdminEndpoint, operatorRefusals } from './endpoint.ts'
import { readPage, singleValue } from './input.ts'

const entry = terms.record(
  {
    id: terms.id('The entry’s id.'),
    at: terms.instant('When.'),
    operator: terms.text('The name of the token: `token` for `admin.token`.'),
    method: terms.text('`PATCH`, `POST` or `DELETE`.'),
    route: terms.text('The pattern of the path, such as `/admin/v1/users/:id`.'),
    user_id: terms.nullable(terms.id('Whom it was about; `null` where that was nobody in particular.')),
    changes: terms.nullable(
      Type.Unsafe<Readonly<Record<string, unknown>>>({
        type: 'object',
        additionalProperties: true,
        description: 'The fields that were changed, and what to; `null` where the request was refused.',
      }),
    ),
    status: Type.Integer({ description: 'Of the answer.' }),
    request_id: terms.text('`X-Request-Id` of the answer.'),
  },
  { title: 'AuditEntry', description: 'Something that an operator changed, or was refused.' },
)

export const listAudit = {
  method: 'GET',
  path: '/admin/v1/audit',
  id: 'listAudit',
  summary: 'Lists what operators changed or were refused, the newest first',
  caller: 'operator',
  roles: ['read', 'support'],
  query: terms.record({
    user_id: Type.Optional(terms.id('Only what was about this user.')),
    operator: Type.Optional(terms.text('Only what was done with the token of this name.')),
    cursor: terms.cursor,
  }),
  responses: {
    200: {
      description: 'At most 100 entries.',
      body: terms.record({ entries: Type.Array(entry), next_cursor: terms.nextCursor }),
    },
  },
  refusals: mergeRefusals(operatorRefusals, { 400: ['request_invalid'] }),
} as const satisfies Operation

export function createAuditLog(audit: Pick<AuditStore, 'list'>): AdminEndpoint {
  return {
    operation: listAudit,
    async handle({ query }) {
      const operator = readName(singleValue(query.operator))
      const [entries, next_cursor] = await readPage(query, range => audit.list({ ...range, operator }))
      return { entries, next_cursor }
    },
  }
}

/** Refused here, so that a value that no token name can have (a NUL, say) is no database error. */
function readName(text: string | undefined): string | undefined {
  if (text !== undefined && !/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(text)) throw new Refusal('request_invalid')
  return text
}
