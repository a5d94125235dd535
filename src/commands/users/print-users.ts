// Converts users, sessions, API keys and the counts of hash formats to aligned text or to JSON.
import type { HashCount } from '../../accounts/hashes/hash-count-store.ts'
import type { ListedSession } from '../../accounts/session-store.ts'
import type { KeyRecord } from '../../identity/api-keys/user-key-store.ts'
import type { User } from '../../users/user.ts'
import { createTable } from '../print.ts'
import type { NamedIdentity } from './administration.ts'

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

/** The email is the last column, because only the email can be long. */
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

/** @param identities undefined if they are not known */
export function userAsJson(user: User, identities: readonly NamedIdentity[] | undefined): string {
  return `${JSON.stringify({ ...user, identities })}\n`
}

/** @param identities undefined if they are not known */
export function userAsText(user: User, identities: readonly NamedIdentity[] = []): string {
  return createTable()([
    ['id', String(user.id)],
    ['email', escapeInvisible(user.email)],
    ['plan', user.plan],
    ['active', yesOrNo(user)],
    ['verified', user.email_verified_at?.toISOString() ?? 'no'],
    ['usage', usageOf(user)],
    ['created', user.created_at.toISOString()],
    ...identities.map(({ provider, sub, email }) => [
      'identity',
      escapeInvisible([provider, sub, ...(email === null ? [] : [email])].join(' ')),
    ]),
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

/** Uses the field names of the admin API. */
export function keysAsJson(keys: readonly KeyRecord[]): string {
  return `${JSON.stringify({ api_keys: keys })}\n`
}

/** Scopes can be long, so they are the last column. `*` means no limit by scopes. `-` means an empty list. */
export function keysAsTable(keys: readonly KeyRecord[], nowMs: number): string {
  if (keys.length === 0) return 'no API keys\n'
  const rows = keys.map(key => [
    key.id,
    key.prefix ?? '-',
    stateOf(key, nowMs),
    dayOf(key.created_at),
    dayOf(key.expires_at),
    dayOf(key.last_used_at),
    escapeInvisible(key.name),
    key.scopes === null ? '*' : key.scopes.join(' ') || '-',
  ])
  return createTable(['ID', 'PREFIX', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED', 'NAME', 'SCOPES'])(rows)
}

function stateOf({ revoked_at, expires_at }: KeyRecord, nowMs: number): string {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && expires_at.getTime() <= nowMs ? 'expired' : 'live'
}

function dayOf(time: Date | null): string {
  return time?.toISOString().slice(0, 10) ?? '-'
}

export function hashesAsText(counts: readonly HashCount[]): string {
  if (counts.length === 0) return 'no users\n'
  return createTable(['FORMAT', 'USERS'])(counts.map(({ format, users }) => [format, String(users)]))
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

/** Escapes invisible and bidirectional characters. With them, a user could change how a text looks to the operator. */
function escapeInvisible(text: string): string {
  const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
  return text.replace(hidden, character => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}
