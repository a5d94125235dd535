// Lists the sessions of a user, and derives a session id from the record of a refresh token.
import type { Queryable } from '../storage/database.ts'

export interface Session {
  /** A UUID. */
  id: string
  /** The time of the login. */
  created_at: Date
  /** The time of the last rotation. Without a rotation, the time of the login. */
  last_used_at: Date
  expires_at: Date
  /** The `User-Agent` of the login. */
  user_agent: string | null
}

/** Whether a text has the form of a session id. Any other text would cause a database error. */
export function isSessionId(text: string | undefined): text is string {
  return text !== undefined && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
}

/**
 * Limits a list to the sessions with the newest login (`login`) or the newest last use (`use`). Without a limit, the
 * list of a user with many logins would be very long.
 */
export interface NewestSessions {
  newest: 'login' | 'use'
  limit: number
}

/**
 * Returns the active sessions. Without `most`, returns all of them, oldest login first. With `most`, returns at most
 * `most.limit` sessions, sorted by `most.newest`, newest first.
 */
export function listSessions(
  queryable: Queryable,
  userId: number,
  now: Date,
  most?: NewestSessions,
): Promise<Session[]> {
  return queryable.query<Session>(
    `select ${sessionIdOf} as id, coalesce(t.session_created_at, t.created_at) as created_at,
            t.created_at as last_used_at, t.expires_at, t.user_agent
       from refresh_tokens t join users u on u.id = t.user_id
      where t.user_id = $1 and ${isActive}
      order by ${orders[most?.newest ?? 'none']} limit $3`,
    [userId, now, most?.limit ?? null],
  )
}

const orders = { none: '2, t.id', login: '2 desc, t.id desc', use: '3 desc, t.id desc' }

/**
 * The SQL expression for the session id of a record `t`. Version 0.1 stored no session id, so the expression derives an
 * id from the record's id. The derived id is a UUID of version 8 (RFC 9562 §5.8), and is the same in every replica.
 */
export const sessionIdOf =
  "coalesce(t.session_id, overlay(overlay(md5('peage session ' || t.id) placing '8' from 13) placing '8' from 17)::uuid)"

/**
 * The SQL expression for the session id that earlier versions derived. It lacks the version and variant of a UUID. It
 * is still needed, because later records of the same session may contain this id.
 */
export const earlierSessionIdOf = "coalesce(t.session_id, md5('peage session ' || t.id)::uuid)"

/** The SQL condition for an active record `t` of the user `u`. `$2` is the current time. */
export const isActive = 't.revoked = 0 and t.expires_at > $2 and t.session_epoch = u.session_epoch'
