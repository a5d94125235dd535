// Finds API keys by hash or id, including the keys of `/api/v1/user/api-token`, and records their last use.
import { type Database, prepared, type Queryable } from '../../storage/database.ts'

/** An API key that is not revoked. It may have expired, and its owner may be inactive. */
export interface ApiKey {
  /** A UUID. The key of `/api/v1/user/api-token` has an id like `api-token-17`. */
  readonly id: string
  readonly userId: number
  /** Whether the key was made by `/api/v1/user/api-token`. */
  readonly isApiToken: boolean
  /** The scopes that the key is limited to; null for no limit. */
  readonly scopes: readonly string[] | null
  /** The time from which the key is invalid, in milliseconds since 1970; null for a key without an expiry. */
  readonly expiresAtMs: number | null
}

export interface ApiKeyStore {
  findActive(tokenHash: string): Promise<ApiKey | undefined>
  /** Returns the keys with these ids, as a map from id to key. Revoked keys are left out. */
  findActiveByIds(ids: readonly string[], tx?: Queryable): Promise<Map<string, ApiKey>>
  /**
   * Records the time of a use, unless a later time is already recorded. A recorded time that is more than a minute
   * later is replaced, because it came from a wrong clock.
   */
  recordUse(id: string, usedAt: Date): Promise<void>
}

export function isExpired({ expiresAtMs }: Pick<ApiKey, 'expiresAtMs'>, nowMs: number): boolean {
  return expiresAtMs !== null && expiresAtMs <= nowMs
}

/** Every method throws StorageError when the store fails. */
export function createApiKeyStore(database: Database): ApiKeyStore {
  return {
    async findActive(tokenHash) {
      const [row] = await database.query<Row>(FIND_ACTIVE, [tokenHash])
      return row && toApiKey(row)
    },

    async findActiveByIds(ids, tx = database) {
      const rows = await tx.query<Row>(FIND_ACTIVE_BY_IDS, [
        ids.flatMap(id => apiTokenIdOf(id) ?? []),
        ids.filter(isApiKeyId),
      ])
      return new Map(rows.map(row => [row.id, toApiKey(row)]))
    },

    async recordUse(id, usedAt) {
      const apiTokenId = apiTokenIdOf(id)
      const table = apiTokenId === undefined ? 'api_keys' : 'api_tokens'
      await database.query(
        `update ${table} set last_used_at = $2::timestamptz
          where id = $1
            and (last_used_at is null or last_used_at < $2 or last_used_at > $2 + interval '1 minute')`,
        [apiTokenId ?? id, usedAt],
      )
    },
  }
}

/** The SQL expression for the id of the row `t` of `api_tokens`, as users and operators see the id. */
export const apiTokenIdColumn = "'api-token-' || t.id as id"

/** Returns the row id in `api_tokens` for an id like `api-token-17`; undefined for any other text. */
export function apiTokenIdOf(id: string): number | undefined {
  const [, digits] = /^api-token-([1-9][0-9]{0,15})$/.exec(id) ?? []
  return digits === undefined ? undefined : Number(digits)
}

/** Returns whether a text looks like the id of an API key: `api-token-` with a number, or a UUID. */
export function isKeyId(text: string): boolean {
  return apiTokenIdOf(text) !== undefined || isApiKeyId(text)
}

/** Returns whether a text is a UUID, like the ids in `api_keys`. A query with any other text would fail. */
export function isApiKeyId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}

interface Row {
  id: string
  user_id: number
  scopes: string[] | null
  expires_at_ms: number | null
  is_api_token: boolean
}

const toApiKey = ({ id, user_id, scopes, expires_at_ms, is_api_token }: Row): ApiKey => ({
  id,
  userId: user_id,
  isApiToken: is_api_token,
  scopes,
  expiresAtMs: expires_at_ms,
})

const activeTokens = `select ${apiTokenIdColumn}, t.user_id, null::text[] as scopes, null::float8 as expires_at_ms,
       true as is_api_token
  from api_tokens t where t.revoked = 0`

const activeKeys = `select k.id::text, k.user_id, k.scopes, (extract(epoch from k.expires_at) * 1000)::float8, false
  from api_keys k where k.revoked_at is null`

const FIND_ACTIVE = prepared(
  `${activeTokens} and t.token_hash = $1 union all ${activeKeys} and k.token_hash = $1`,
)

const FIND_ACTIVE_BY_IDS = `${activeTokens} and t.id = any($1::bigint[])
 union all ${activeKeys} and k.id = any($2::uuid[])`
