// Lists the audit log. No endpoint can change the log.
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { Type } from '../../schema/type.ts'
import { type AuditRecord, auditChannels } from '../audit-store.ts'
import { consoleOperations } from '../console/session.openapi.ts'
import { type AdminDependencies, type AdminEndpoint, operatorRefusals } from './admin-endpoint.ts'
import { emitAlert } from './emit-alert.ts'
import { readOneOf, readPage, singleValue } from './input.ts'
import { retryDelivery } from './retry-delivery.ts'
import { userOperations } from './users.openapi.ts'

/** The audit log records all operations on users except `show` and `sessions`. */
const { show: _show, sessions: _sessions, ...audited } = userOperations

const operations = [...Object.values(audited), emitAlert, retryDelivery, consoleOperations.signIn]

export type AuditedAction = (typeof operations)[number]['id']

const auditedActions: readonly AuditedAction[] = operations.map(({ id }) => id)

const fields = (description: string) =>
  terms.nullable(
    Type.Unsafe<Readonly<Record<string, unknown>>>({
      type: 'object',
      additionalProperties: true,
      description,
    }),
  )

const entry = terms.record(
  {
    id: terms.id('The ID of the entry.'),
    at: terms.instant('The time of the call.'),
    operator: terms.text('The name of the token. For `admin.token`, the name is `token`.'),
    channel: terms.nullable(
      terms.oneOf(
        auditChannels,
        'The origin of the call: the console, the admin API, or `peage users`. `null` in old entries.',
      ),
    ),
    action: terms.nullable(
      terms.oneOf(auditedActions, 'The `operationId` of the operation. `null` if a read was refused.'),
    ),
    method: terms.text('The method of the call.'),
    route: terms.text('The pattern of the path, for example `/admin/v1/users/:id`.'),
    user_id: terms.nullable(
      terms.id('The user whom the call concerned. `null` if it did not concern a single user.'),
    ),
    email: terms.nullable(
      terms.text('The current email of this user. The audit does not store it. `null` for a deleted user.'),
    ),
    changes: fields('The changed fields with their new values. `null` if the call was refused.'),
    previous: fields(
      'The previous values of `plan`, `is_active` and `email_verified`, if the call changed them.',
    ),
    status: Type.Integer({ description: 'The status code of the response.' }),
    request_id: terms.text('`X-Request-Id` of the response.'),
  },
  { title: 'AuditEntry', description: 'A change by an operator, or a refused call.' },
)

const time = (description: string) =>
  Type.Optional(terms.text(`${description} For example \`2026-01-31\` (UTC) or \`2026-01-31T12:00:00Z\`.`))

export const listAudit = {
  method: 'GET',
  path: '/admin/v1/audit',
  id: 'listAudit',
  summary: 'Lists changes by operators and refused calls, newest first',
  caller: 'operator',
  roles: ['read', 'support'],
  query: terms.record({
    user_id: Type.Optional(terms.id('Only entries about this user.')),
    operator: Type.Optional(terms.text('Only entries of the token with this name.')),
    action: Type.Optional(terms.oneOf(auditedActions, 'Only entries of this operation.')),
    from: time('Only entries since the start of this day, or since this time.'),
    to: time('Only entries up to the end of this day, or before this time.'),
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

export function createAuditLog({ audit }: AdminDependencies): AdminEndpoint {
  return {
    operation: listAudit,
    async handle({ query }) {
      const action = readOneOf(auditedActions, query.action)
      const filter = {
        operator: readName(singleValue(query.operator)),
        action: action && operationOf(action),
        from: readTime(singleValue(query.from), 'start'),
        until: readTime(singleValue(query.to), 'end'),
      }
      const [page, next_cursor] = await readPage(query, range => audit.list({ ...range, ...filter }))
      return { entries: page.map(one => ({ ...one, action: actionOf(one) })), next_cursor }
    },
  }
}

/**
 * Returns the action that an entry records. Null if the action is not one of `operations`, for example for a refused
 * read.
 */
function actionOf({ method, route }: Pick<AuditRecord, 'method' | 'route'>): AuditedAction | null {
  return operations.find(one => one.method === method && one.path === route)?.id ?? null
}

function operationOf(action: AuditedAction): Pick<AuditRecord, 'method' | 'route'> | undefined {
  const found = operations.find(({ id }) => id === action)
  return found && { method: found.method, route: found.path }
}

/**
 * Refuses names that no token can have. Some of these names, for example a name with a NUL, would cause a database
 * error.
 */
function readName(text: string | undefined): string | undefined {
  if (text !== undefined && !/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(text)) throw new Refusal('request_invalid')
  return text
}

const dayMs = 86_400_000

/**
 * Reads a time in RFC 3339 format, or a day (UTC). A day means its start or its end, depending on `edge`.
 * @throws Refusal `request_invalid`
 */
function readTime(text: string | undefined, edge: 'start' | 'end'): Date | undefined {
  if (text === undefined) return undefined
  const [, day, time] = timePattern.exec(text) ?? []
  const start = new Date(`${day}T00:00:00Z`)
  const at = time === undefined ? start : new Date(text)
  // `Date` accepts February 30 and reads it as March 2. Therefore the result is compared with the given day.
  const isReal = !Number.isNaN(at.getTime()) && start.toISOString().startsWith(`${day}T`)
  if (!isReal) throw new Refusal('request_invalid')
  return time === undefined && edge === 'end' ? new Date(start.getTime() + dayMs) : at
}

const timePattern = /^([12]\d{3}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/
