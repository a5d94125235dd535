// Finds users by the start of an email, by id, or by plan.
import { hash } from 'node:crypto'
import { normalizeEmail } from '../../accounts/email.ts'
import { parseSubject } from '../../identity/tokens/tokens.ts'
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { Type } from '../../schema/type.ts'
import type { User } from '../../users/user.ts'
import type { UserQuery } from '../../users/user-directory.ts'
import {
  type AdminDependencies,
  type AdminEndpoint,
  type AdminRequest,
  operatorRefusals,
} from './admin-endpoint.ts'
import { invalidField, singleValue } from './input.ts'
import { readEmail, readPlanName } from './user-input.ts'

const mostPerPage = 200
const defaultPerPage = 50

export const listUsers = {
  method: 'GET',
  path: '/admin/v1/users',
  id: 'listUsers',
  summary: 'Lists users, including inactive users',
  description: 'Users are ordered by ID. With `q`, they are ordered by email.',
  caller: 'operator',
  roles: ['read', 'support', 'billing'],
  query: terms.record({
    q: Type.Optional(
      terms.text(
        'Only users whose email begins with this text, in any letter case. If the text is a number, the result also contains the user with this ID.',
      ),
    ),
    email: Type.Optional(terms.text('Only the user with this email, in any letter case.')),
    plan: Type.Optional(terms.plan),
    is_active: Type.Optional(
      terms.oneOf(
        ['0', '1', 'false', 'true'],
        '`0` or `false` lists only inactive users, `1` or `true` only active users.',
      ),
    ),
    cursor: Type.Optional(
      terms.text(
        'The `next_cursor` of the previous page. Except for `limit`, all other parameters must be the same as for the previous page.',
      ),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: mostPerPage,
        default: defaultPerPage,
        description: 'The maximum number of users on a page.',
      }),
    ),
  }),
  responses: {
    200: {
      description: 'A page of users.',
      body: terms.record({ users: Type.Array(terms.user), next_cursor: terms.nextCursor }),
    },
  },
  refusals: mergeRefusals(operatorRefusals, { 400: ['request_invalid', 'plan_invalid', 'email_invalid'] }),
} as const satisfies Operation

export function createUserListing({ userDirectory }: AdminDependencies): AdminEndpoint {
  return {
    operation: listUsers,
    async handle({ query: parameters }) {
      const query = readQuery(parameters)
      const limit = readLimit(singleValue(parameters.limit))
      const after = readCursor(singleValue(parameters.cursor), query)
      if (query.prefix !== undefined && !mayBeginEmail(query.prefix)) return { users: [], next_cursor: null }
      const { users, hasMore } = await userDirectory.page(query, after, limit)
      const last = hasMore ? users.at(-1) : undefined
      return { users, next_cursor: last === undefined ? null : writeCursor(last, query) }
    },
  }
}

function readQuery({ q, email, plan, is_active }: AdminRequest['query']): UserQuery {
  const [search, exactly, onPlan, active] = [q, email, plan, is_active].map(singleValue)
  const prefix = normalizeEmail(search ?? '')
  return {
    ...(exactly === undefined ? {} : { email: readFilter(exactly) }),
    ...(onPlan === undefined ? {} : { plan: readPlanName(onPlan) }),
    ...(active === undefined ? {} : { isActive: readActive(active) }),
    ...(prefix === '' ? {} : { prefix, id: parseSubject(prefix) }),
  }
}

/**
 * Refuses an email with white space, because some clients send a space instead of `+`. Without this refusal, the user
 * would not be found and would seem to be deleted.
 */
function readFilter(text: string): string {
  if (/\s/.test(text.trim())) throw invalidField('email')
  return readEmail(text)
}

function readActive(text: string): 0 | 1 {
  if (text === '0' || text === 'false') return 0
  if (text === '1' || text === 'true') return 1
  throw new Refusal('request_invalid')
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return defaultPerPage
  const limit = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > mostPerPage) throw new Refusal('request_invalid')
  return limit
}

/**
 * Whether an email can begin with this text. Other texts, for example a text with a NUL, would cause a database error.
 */
function mayBeginEmail(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text)
}

/** The cursor contains a digest of the query, so it is valid only for the same query. */
function writeCursor({ id, email }: User, query: UserQuery): string {
  const last = query.prefix === undefined ? id : email
  return Buffer.from(JSON.stringify([digestOf(query), last])).toString('base64url')
}

function readCursor(text: string | undefined, query: UserQuery): string | number | undefined {
  if (text === undefined) return undefined
  const [digest, last] = parseCursor(text)
  const isFit =
    query.prefix === undefined ? Number.isSafeInteger(last) : typeof last === 'string' && mayBeginEmail(last)
  if (digest !== digestOf(query) || !isFit) throw new Refusal('request_invalid')
  return last as string | number
}

function parseCursor(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

function digestOf({ email, plan, isActive, prefix }: UserQuery): string {
  return hash('sha256', JSON.stringify([email, plan, isActive, prefix]), 'base64url').slice(0, 16)
}
