// Lists the sessions of a user, and derives the session id of a refresh token's record.
import type { Queryable } from '../storage/database.ts'

export interface Session {
  /** A UUID. */
  id: string
  /** The time of the login. */
  created_at: Date
  /** The time of the login or of the last rotation. */
  last_used_at: Date
  expires_at: Date
  /** The `User-Agent` of the login. */
  user_agent: string | null
}

/** Whether a text has the form of a session's id. The database refuses any other text. */
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
 * The session id of a record `t`. A record of version 0.1 has no session id, so one is derived from the record's id.
 * The result is a UUID of version 8 (RFC 9562 §5.8) and the same in every replica.
 */
export const sessionIdOf =
  "coalesce(t.session_id, overlay(overlay(md5('peage session ' || t.id) placing '8' from 13) placing '8' from 17)::uuid)"

/**
 * The session id in the form that earlier versions derived, without the version and variant of a UUID. It is still
 * needed, because the later records of a session may have stored it.
 */
export const earlierSessionIdOf = "coalesce(t.session_id, md5('peage session ' || t.id)::uuid)"

/** Whether the record `t` of the user `u` is active. `$2` is the current time. */
export const isActive = 't.revoked = 0 and t.expires_at > $2 and t.session_epoch = u.session_epoch'
