// The operators' account endpoints, which include inactive accounts (CONTRACT §7).
import { isStorableEmail, normalizeEmail } from '../../accounts/email.ts'
import type { SessionStore } from '../../accounts/session-store.ts'
import type { Clock } from '../../clock.ts'
import type { JsonObject } from '../../http/json-body.ts'
import { parseSubject } from '../../identity/tokens/tokens.ts'
import { messages } from '../../refusals/catalog.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { isPlan, type Plan, type User } from '../../users/user.ts'
import type { UserPatch } from '../../users/user-record-store.ts'
import type { UserStore } from '../../users/user-store.ts'
import type { AdminEndpoint } from './endpoint.ts'
import { invalidField, pageSize, readId, singleValue } from './input.ts'
import { userOperations } from './users.openapi.ts'

interface Dependencies {
  users: Pick<UserStore, 'list' | 'findById' | 'update'>
  sessions: Pick<SessionStore, 'list' | 'revokeAll'>
  clock: Clock
  /** Resolves when the change is visible in this process. */
  changesVisible(): Promise<void>
}

export function createUserAdministration({
  users,
  sessions,
  clock,
  changesVisible,
}: Dependencies): AdminEndpoint[] {
  return [
    {
      operation: userOperations.list,
      async handle({ query: { email, plan, cursor } }) {
        const { users: page, nextCursor } = await users.list({
          email: readEmail(singleValue(email)),
          plan: plan === undefined ? undefined : readPlan(singleValue(plan)),
          cursor: readId(cursor),
          limit: pageSize,
        })
        return { users: page, next_cursor: nextCursor === null ? null : String(nextCursor) }
      },
    },
    {
      operation: userOperations.show,
      handle: async ({ params: { id } }) => orNotFound(await users.findById(parseUserId(id))),
    },
    {
      operation: userOperations.change,
      async handle({ params: { id }, body, audited }) {
        const userId = parseUserId(id)
        const patch = readPatch(body)
        const user = orNotFound(await users.update(userId, patch, audited({ userId, changes: { ...patch } })))
        await changesVisible()
        return user
      },
    },
    {
      operation: userOperations.sessions,
      async handle({ params: { id: text } }) {
        const { id } = orNotFound(await users.findById(parseUserId(text)))
        return { sessions: await sessions.list(id, new Date(clock.now())) }
      },
    },
    {
      operation: userOperations.endSessions,
      async handle({ params: { id: text }, audited }) {
        const id = parseUserId(text)
        if (!(await sessions.revokeAll(id, audited({ userId: id, changes: {} })))) throw notFound()
        await changesVisible()
        return { message: messages.sessionsRevoked }
      },
    },
  ]
}

/** Text that cannot be a user id names no user: 404. */
function parseUserId(text: string | undefined): number {
  const id = parseSubject(text)
  if (id === undefined) throw notFound()
  return id
}

/** Refused here, so that a value that no account's email can have (a NUL, say) is no database error. */
function readEmail(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const email = normalizeEmail(text)
  if (!isStorableEmail(email)) throw new Refusal('email_invalid')
  return email
}

function readPlan(value: unknown): Plan {
  if (!isPlan(value)) throw new Refusal('plan_invalid')
  return value
}

function readPatch(body: JsonObject): UserPatch {
  const plan = body.value('plan')
  const isActive = body.value('is_active')
  const verified = body.value('email_verified')
  return {
    ...(plan === undefined ? {} : { plan: readPlan(plan) }),
    ...(isActive === undefined ? {} : { is_active: readFlag(isActive) }),
    ...(verified === undefined ? {} : { email_verified: readBoolean('email_verified', verified) }),
  }
}

function readBoolean(field: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalidField(field)
  return value
}

function readFlag(value: unknown): 0 | 1 {
  if (value === 0 || value === false) return 0
  if (value === 1 || value === true) return 1
  throw invalidField('is_active')
}

function orNotFound(user: User | undefined): User {
  if (user === undefined) throw notFound()
  return user
}

function notFound(): Refusal {
  return new Refusal('user_not_found', { status: 404 })
}
