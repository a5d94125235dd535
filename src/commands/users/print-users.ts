// Formats users and sessions as aligned text or as JSON.
import type { ListedSession } from '../../accounts/session-store.ts'
import type { User } from '../../users/user.ts'
import { createTable } from '../print.ts'

/** Yields one JSON document of any length: `{"users":[…]}`, with one user per line. */
export async function* usersAsJson(pages: AsyncIterable<User[]>): AsyncGenerator<string> {
  let before = '{"users":[\n'
  for await (const users of pages) {
    if (users.length === 0) continue
    yield before + users.map(user => JSON.stringify(user)).join(',\n')
    before = ',\n'
  }
  yield before === ',\n' ? '\n]}\n' : '{"users":[]}\n'
}

/** The email is the last column, because only the email may be long. */
export async function* usersAsTable(pages: AsyncIterable<User[]>): AsyncGenerator<string> {
  const formatPage = createTable(['ID', 'PLAN', 'ACTIVE', 'USAGE', 'CREATED', 'EMAIL'])
  let hasRows = false
  for await (const users of pages) {
    if (users.length === 0) continue
    hasRows = true
    yield formatPage(
      users.map(user => [
        String(user.id),
        user.plan,
        yesOrNo(user),
        usageOf(user),
        user.created_at.toISOString().slice(0, 10),
        escapeInvisible(user.email),
      ]),
    )
  }
  if (!hasRows) yield 'no users\n'
}

export function userAsText(user: User): string {
  return createTable()([
    ['id', String(user.id)],
    ['email', escapeInvisible(user.email)],
    ['plan', user.plan],
    ['active', yesOrNo(user)],
    ['verified', user.email_verified_at?.toISOString() ?? 'no'],
    ['usage', usageOf(user)],
    ['created', user.created_at.toISOString()],
  ])
}

/** Uses the field names of the admin API. */
export function sessionsAsJson(sessions: readonly ListedSession[]): string {
  const shown = sessions.map(({ id, created_at, expires_at }) => ({ id, created_at, expires_at }))
  return `${JSON.stringify({ sessions: shown })}\n`
}

export function sessionsAsText(sessions: readonly ListedSession[]): string {
  if (sessions.length === 0) return 'no sessions\n'
  const rows = sessions.map(({ id, created_at, expires_at }) => [
    id,
    created_at.toISOString(),
    expires_at.toISOString(),
  ])
  return createTable(['ID', 'CREATED', 'EXPIRES'])(rows)
}

/** Returns a text such as `user 3 (a@example.com)`. */
export function userLabel({ id, email }: Pick<User, 'id' | 'email'>): string {
  return `user ${id} (${escapeInvisible(email)})`
}

function yesOrNo({ is_active }: User): string {
  return is_active === 1 ? 'yes' : 'no'
}

function usageOf({ daily_usage, last_usage_date }: User): string {
  return last_usage_date === null ? '-' : `${daily_usage} on ${last_usage_date}`
}

/** Escapes invisible and bidirectional characters. With them, an email could change the text that the operator sees. */
function escapeInvisible(email: string): string {
  const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
  return email.replace(hidden, character => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}
