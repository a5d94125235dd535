// Accounts as operators see and change them (CONTRACT §7); inactive ones too.
import { isStorableEmail, normalizeEmail } from '../../accounts/email.ts'
import type { SessionStore } from '../../accounts/session-store.ts'
import type { Clock } from '../../clock.ts'
import type { JsonObject } from '../../http/json-body.ts'
import { parseSubject } from '../../identity/tokens/tokens.ts'
import { messages } from '../../refusals/catalog.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { isPlan, type Plan, type User } from '../../users/user.ts'
import type { UserChange, UserStore } from '../../users/user-store.ts'
import { invalidField } from './bodies.ts'
import type { AdminEndpoint } from './endpoint.ts'
import { pageSize, readId, single } from './query-params.ts'
import { userOperations } from './users.openapi.ts'

interface Parts {
  users: Pick<UserStore, 'list' | 'findById' | 'update'>
  sessions: Pick<SessionStore, 'list' | 'revokeAll'>
  clock: Clock
  /** Resolves when what was changed is in force here. */
  inForce(): Promise<void>
}

export function createUserAdministration({ users, sessions, clock, inForce }: Parts): AdminEndpoint[] {
  return [
    {
      operation: userOperations.list,
      async answer({ query: { email, plan, cursor } }) {
        const { users: page, nextCursor } = await users.list({
          email: readEmail(single(email)),
          plan: plan === undefined ? undefined : readPlan(single(plan)),
          cursor: readId(cursor),
          limit: pageSize,
        })
        return { users: page, next_cursor: nextCursor === null ? null : String(nextCursor) }
      },
    },
    {
      operation: userOperations.show,
      answer: async ({ params: { id } }) => found(await users.findById(userId(id))),
    },
    {
      operation: userOperations.change,
      async answer({ params: { id }, body, audited }) {
        const target = userId(id)
        const change = readChange(body)
        const user = found(
          await users.update(target, change, audited({ userId: target, changes: { ...change } })),
        )
        await inForce()
        return user
      },
    },
    {
      operation: userOperations.sessions,
      async answer({ params: { id: text } }) {
        const { id } = found(await users.findById(userId(text)))
        return { sessions: await sessions.list(id, new Date(clock.now())) }
      },
    },
    {
      operation: userOperations.endSessions,
      async answer({ params: { id: text }, audited }) {
        const id = userId(text)
        if (!(await sessions.revokeAll(id, audited({ userId: id, changes: {} })))) throw notFound()
        return { message: messages.sessionsRevoked }
      },
    },
  ]
}

/** What no user can have as an id is the id of no user. */
function userId(text: string | undefined): number {
  const id = parseSubject(text)
  if (id === undefined) throw notFound()
  return id
}

/** What no account can have as an email (a NUL, say) is not the database's to refuse. */
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

function readChange(body: JsonObject): UserChange {
  const plan = body.value('plan')
  const isActive = body.value('is_active')
  return {
    ...(plan === undefined ? {} : { plan: readPlan(plan) }),
    ...(isActive === undefined ? {} : { is_active: readFlag(isActive) }),
  }
}

function readFlag(value: unknown): 0 | 1 {
  if (value === 0 || value === false) return 0
  if (value === 1 || value === true) return 1
  throw invalidField('is_active')
}

function found(user: User | undefined): User {
  if (user === undefined) throw notFound()
  return user
}

function notFound(): Refusal {
  return new Refusal('user_not_found', { status: 404 })
}
