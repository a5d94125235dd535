// Accounts as operators see and change them (CONTRACT §7); inactive ones too.
import type { FastifyInstance } from 'fastify'
import { isStorableEmail, normalizeEmail } from '../accounts/email.ts'
import type { SessionStore } from '../accounts/session-store.ts'
import { isPlan, type Plan, type User } from '../accounts/user.ts'
import type { UserStore } from '../accounts/user-store.ts'
import type { Clock } from '../clock.ts'
import { parseSubject } from '../identity/tokens.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { JsonObject } from '../wire/json-body.ts'
import { readBody } from './bodies.ts'
import { type Parameter, readId, single } from './queries.ts'

interface Parts {
  users: UserStore
  sessions: Pick<SessionStore, 'list' | 'revokeAll'>
  clock: Clock
  /** Resolves when what was changed is in force here. */
  inForce(): Promise<void>
}

interface ById {
  Params: { id: string }
}

interface Listing {
  Querystring: { email?: Parameter; plan?: Parameter; cursor?: Parameter }
}

export function serveUsers(app: FastifyInstance, { users, sessions, clock, inForce }: Parts): void {
  app.get<Listing>('/users', async request => {
    const { email, plan, cursor } = request.query
    const page = await users.list({
      email: readEmail(single(email)),
      plan: plan === undefined ? undefined : readPlan(single(plan)),
      cursor: readId(cursor),
      limit: pageSize,
    })
    return { users: page.users, next_cursor: page.nextCursor === null ? null : String(page.nextCursor) }
  })

  app.get<ById>('/users/:id', async request => found(await users.findById(userId(request.params.id))))

  app.patch<ById>('/users/:id', async request => {
    const id = userId(request.params.id)
    const user = found(await users.update(id, readChange(await readBody(request))))
    await inForce()
    return user
  })

  app.get<ById>('/users/:id/sessions', async request => {
    const { id } = found(await users.findById(userId(request.params.id)))
    return { sessions: await sessions.list(id, new Date(clock.now())) }
  })

  app.delete<ById>('/users/:id/sessions', async request => {
    if (!(await sessions.revokeAll(userId(request.params.id)))) throw notFound()
    return { message: messages.sessionsRevoked }
  })
}

/** Users on a page. */
const pageSize = 100

/** What no user can have as an id is the id of no user. */
function userId(text: string): number {
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

/** A misspelt key must not look like a change that was made. */
function readChange(body: JsonObject): { plan?: Plan; is_active?: 0 | 1 } {
  if (body.names().some(name => name !== 'plan' && name !== 'is_active')) throw new Refusal('request_invalid')
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
  throw new Refusal('request_invalid')
}

function found(user: User | undefined): User {
  if (user === undefined) throw notFound()
  return user
}

function notFound(): Refusal {
  return new Refusal('user_not_found', { status: 404 })
}
