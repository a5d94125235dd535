// Builds the schemas of the OpenAPI document, and defines the schemas that several operations share.
import { PLAN_PATTERN, SCOPE_PATTERN } from '../config/sections/builders.ts'
import { type Keywords, type Properties, type Schema, Type } from '../schema/type.ts'

/**
 * @param options the keywords of the object's schema. With a `title`, the schema becomes a component of the document.
 */
export function record<Of extends Properties>(properties: Of, options: Omit<Keywords, 'properties'> = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/** Builds an object that may have other members, which are ignored. */
export function openRecord<Of extends Properties>(properties: Of) {
  return record(properties, { additionalProperties: true })
}

export function nullable<Of extends Schema>(schema: Of) {
  return Type.Union([schema, Type.Null()])
}

export function oneOf<const Values extends string[]>(values: readonly [...Values], description?: string) {
  return Type.Unsafe<Values[number]>({
    type: 'string',
    enum: values,
    ...(description === undefined ? {} : { description }),
  })
}

export const text = (description: string, options: Keywords = {}) => Type.String({ description, ...options })

export const count = (description: string) => Type.Integer({ minimum: 0, description })

/** Builds the schema of a row's id, an integer that JSON represents exactly. */
export const id = (description: string) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description })

/** Builds the schema of a `Date` from the store, serialized as ISO 8601 in UTC. */
export const instant = (description: string) =>
  Type.Unsafe<Date>({ type: 'string', format: 'date-time', description })

const flag = Type.Unsafe<0 | 1>({ type: 'integer', enum: [0, 1] })

export const plan = text('The name of the plan.', { pattern: PLAN_PATTERN })

export const user = record(
  {
    id: id('The user ID.'),
    email: text('The email, without surrounding white space and in lower case.'),
    plan,
    is_active: flag,
    daily_usage: count('Uses counted on `last_usage_date`.'),
    last_usage_date: nullable(
      Type.String({ format: 'date', description: 'The UTC day of the last counted use.' }),
    ),
    created_at: instant('The creation time of the account.'),
    email_verified_at: nullable(
      instant('The time of the email verification. `null` if the email is not verified.'),
    ),
  },
  { title: 'User', description: 'A user record, without the password hash.' },
)

export const scope = text('A scope of a route.', { pattern: SCOPE_PATTERN })

/** The members of an API key, as its owner sees it. */
export const apiKey = {
  id: text('The id of the key, a text of lower-case letters, digits and `-`.'),
  name: text('The name of the key. The key of `/api/v1/user/api-token` has the name `api-token`.'),
  prefix: nullable(
    text('The first 12 characters of the key. `null` for the key of `/api/v1/user/api-token`.'),
  ),
  scopes: nullable(
    Type.Array(text('A scope.'), {
      description: 'The scopes that the key is limited to. `null` for no limit.',
    }),
  ),
  created_at: instant('The creation time of the key.'),
  expires_at: nullable(instant('The time from which the key is invalid. `null` if the key does not expire.')),
  last_used_at: nullable(instant('The approximate time of the last use. `null` if the key was never used.')),
}

/** An API key, as the admin API and exports contain it. */
export const keyRecord = record(
  {
    ...apiKey,
    revoked_at: nullable(instant('The time of the revocation. `null` if the key is not revoked.')),
  },
  { title: 'ApiKey', description: 'An API key, without the key itself and its hash.' },
)

/** The members of an identity, as its owner sees it. */
export const identity = {
  provider: text(
    'The name of the provider in the configuration. If the provider is not configured, the issuer.',
  ),
  email: nullable(text('The email at the provider at the time when the identity was stored.')),
  created_at: instant('The time at which the identity was stored.'),
  last_used_at: nullable(instant('The time of the last sign-in. `null` if there was none.')),
}

/** The members that identify a person at a provider. Only the admin API and exports contain them. */
export const issuerAndSub = {
  issuer: text('The issuer of the provider.'),
  sub: text('The ID of the user at the provider.'),
}

/** The rate limit of a plan. */
export const planRate = nullable(
  record(
    {
      requests: Type.Integer({ minimum: 1, description: 'The requests per window, on all routes together.' }),
      window_seconds: Type.Integer({
        minimum: 1,
        description: 'The length of the window in seconds, rounded up.',
      }),
    },
    { title: 'PlanRate', description: 'The rate limit of a plan, per user. `null` means no limit.' },
  ),
)

/** The limit and the uses of each quota of a user's plan. */
export const quotaUsage = Type.Array(
  record(
    {
      name: text('The name of the quota.'),
      period: nullable(oneOf(['day', 'month'], 'The kind of period, in UTC.')),
      limit: nullable(count('The uses per period. `null` means no limit.')),
      used: nullable(count('The uses counted in the current period.')),
      remaining: nullable(count('The uses left in the current period.')),
      resets_at: nullable(
        Type.String({ format: 'date-time', description: 'The end of the current period.' }),
      ),
    },
    {
      title: 'QuotaUsage',
      description:
        'A quota of the plan. If the quota has no limit, all members except `name` are `null`. If the limit is 0, `period` and `resets_at` are `null`.',
    },
  ),
  { description: 'The quotas of the user’s plan. Empty if the plan is not configured.' },
)

export const message = record(
  { message: text('A sentence.') },
  { title: 'Message', description: 'A confirmation.' },
)

/** The query parameter that selects the page to return. Without this parameter, the first page is returned. */
export const cursor = Type.Optional(text('The `next_cursor` of the previous page.'))

export const nextCursor = nullable(text('The `cursor` of the next page. `null` on the last page.'))
