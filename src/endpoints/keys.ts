// The endpoints of a user's API keys. They require an access token, so an API key cannot create, list or revoke keys.
import type { Clock } from '../clock.ts'
import type { Plans } from '../config/plans.ts'
import type { RouteConfig } from '../config/sections/schema.ts'
import { hashApiKey, makeApiKey, type RandomBytes } from '../identity/api-keys/api-key.ts'
import type { UserKeyStore } from '../identity/api-keys/user-key-store.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { messages } from '../refusals/catalog.ts'
import { rateLimited } from '../refusals/limits.ts'
import { planRefusal } from '../refusals/plan-refusal.ts'
import { Refusal } from '../refusals/refusal.ts'
import { Type } from '../schema/type.ts'
import { limitNames, type RateLimiter } from '../storage/rate-limiter.ts'
import { authPrefix } from './auth.ts'
import { type GuardedEndpoint, guardRefusals } from './local-endpoint.ts'
import type { RequireLiveCredential, SignedInEndpoint } from './signed-in.ts'

const { record, text } = terms
const path = `${authPrefix}/keys`

export const keyOperations = {
  list: {
    method: 'GET',
    path,
    id: 'listOwnKeys',
    summary: 'Lists the current user’s live API keys, newest first',
    caller: 'user',
    responses: {
      200: {
        description: 'The keys.',
        body: record({
          keys: Type.Array(record(terms.apiKey, { title: 'OwnKey', description: 'An API key.' })),
          limit: terms.count('The maximum number of keys of the user’s plan.'),
          available_scopes: Type.Array(terms.scope, {
            description: 'The scopes of the routes, in alphabetical order.',
          }),
        }),
      },
    },
    refusals: guardRefusals,
  },
  create: {
    method: 'POST',
    path,
    id: 'createOwnKey',
    summary: 'Creates an API key',
    caller: 'user',
    body: terms.openRecord({
      name: text(
        'A name of at most 64 characters, without control characters. White space at its ends is removed first.',
        { minLength: 1 },
      ),
      scopes: Type.Optional(
        Type.Array(terms.scope, {
          description: 'The scopes that the key is limited to, without duplicates. Omitted: no limit.',
          minItems: 1,
          maxItems: 50,
        }),
      ),
      expires_in_days: Type.Optional(
        terms.nullable(
          Type.Integer({
            description:
              'The number of days until the key expires. Omitted or `null`: the key does not expire.',
            minimum: 1,
            maximum: 366,
          }),
        ),
      ),
    }),
    responses: {
      201: {
        description: 'The key is created. Only this response shows it.',
        body: record({
          ...terms.apiKey,
          key: text('The API key, for the header `X-API-Key`.', { pattern: '^peage_[0-9A-Za-z]{36}$' }),
        }),
      },
    },
    refusals: mergeRefusals(guardRefusals, {
      400: ['key_name_invalid', 'scope_invalid', 'expiry_invalid'],
      403: ['plan_insufficient'],
      409: ['key_limit_reached'],
    }),
  },
  revoke: {
    method: 'DELETE',
    path: `${path}/:id`,
    id: 'revokeOwnKey',
    summary: 'Revokes one API key of the current user',
    caller: 'user',
    params: record({ id: text('The id of the key.') }),
    responses: { 200: { description: 'The key is revoked.', body: terms.message } },
    refusals: mergeRefusals(guardRefusals, { 404: ['key_unknown'] }),
  },
  revokeAll: {
    method: 'DELETE',
    path,
    id: 'revokeOwnKeys',
    summary: 'Revokes all API keys of the current user',
    caller: 'user',
    responses: {
      200: {
        description: 'The keys are revoked, including the key of `/api/v1/user/api-token`.',
        body: record({
          message: text('A sentence.'),
          revoked: terms.count('The number of live keys that were revoked.'),
        }),
      },
    },
    refusals: guardRefusals,
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  plans: Plans
  /** The scopes of the routes. */
  scopes: readonly string[]
  userKeys: Pick<UserKeyStore, 'listLive' | 'create' | 'revoke' | 'revokeAll'>
  /** `auth.rate_limits.keys`. */
  limiter: RateLimiter
  randomBytes: RandomBytes
  clock: Clock
  requireLiveCredential: RequireLiveCredential
  signedIn: SignedInEndpoint
  /** Resolves when all processes of this gateway have seen the change. From then on, they refuse a revoked key. */
  changesVisible(): Promise<void>
}

/** Each endpoint throws StorageError when the store fails. */
export function createKeyEndpoints(dependencies: Dependencies): GuardedEndpoint[] {
  const { plans, scopes, userKeys, limiter, randomBytes, clock, signedIn, changesVisible } = dependencies
  const { requireLiveCredential } = dependencies
  const now = () => new Date(clock.now())
  const limitOf = (plan: string) => plans.find(plan)?.api_keys ?? 0
  return [
    signedIn(keyOperations.list, async ({ user }) => ({
      status: 200,
      body: {
        keys: await userKeys.listLive(user.id, now()),
        limit: limitOf(user.plan),
        available_scopes: scopes,
      },
    })),

    signedIn(keyOperations.create, async request => {
      const { user, body } = request
      if (limitOf(user.plan) === 0) throw planRefusal(plans.withApiKeys, user.plan)
      const name = readName(body.value('name'))
      const limitedTo = readScopes(body.value('scopes'), scopes)
      const days = readDays(body.value('expires_in_days'))
      const createdAt = now()
      const key = makeApiKey(randomBytes)
      const created = await userKeys.create(
        user.id,
        {
          tokenHash: hashApiKey(key),
          name,
          prefix: key.slice(0, 12),
          scopes: limitedTo,
          createdAt,
          expiresAt: days === null ? null : new Date(createdAt.getTime() + days * dayMs),
        },
        async (tx, { plan }, liveKeys) => {
          await requireLiveCredential(request, tx)
          const limit = limitOf(plan)
          if (limit === 0) throw planRefusal(plans.withApiKeys, plan)
          if (liveKeys >= limit) throw new Refusal('key_limit_reached', { body: { limit } })
          await consumeKeyLimit(limiter, user.id)
        },
      )
      if (created === 'user_gone') throw new Refusal('user_not_found')
      return { status: 201, body: { ...created, key } }
    }),

    signedIn(keyOperations.revoke, async ({ user, parameter }) => {
      if (!(await userKeys.revoke(user.id, parameter, now()))) throw new Refusal('key_unknown')
      await changesVisible()
      return { status: 200, body: { message: messages.keyRevoked } }
    }),

    signedIn(keyOperations.revokeAll, async ({ user }) => {
      const revoked = await userKeys.revokeAll(user.id, now())
      if (revoked === undefined) throw new Refusal('user_not_found')
      await changesVisible()
      return { status: 200, body: { message: messages.keysRevoked, revoked } }
    }),
  ]
}

/** Counts the creation of an API key or an API token. @throws Refusal `rate_limited` if the user creates too many */
export async function consumeKeyLimit(limiter: RateLimiter, userId: number): Promise<void> {
  const taken = await limiter.consume(String(userId))
  if (!taken.allowed) throw rateLimited(limitNames.keys, taken)
}

/** Returns the scopes of all routes, each once, in the order of their UTF-16 code units. */
export function scopesOf(routes: readonly Pick<RouteConfig, 'scope'>[]): string[] {
  return [...new Set(routes.flatMap(({ scope }) => scope ?? []))].sort()
}

const dayMs = 24 * 60 * 60_000

/** @throws Refusal `key_name_invalid` */
function readName(given: unknown): string {
  const name = typeof given === 'string' ? given.trim() : ''
  const isValid = name !== '' && [...name].length <= 64 && !/\p{Cc}/u.test(name) && name.isWellFormed()
  if (!isValid) throw new Refusal('key_name_invalid')
  return name
}

/** @returns null if the key is not limited to scopes @throws Refusal `scope_invalid` */
function readScopes(given: unknown, available: readonly string[]): readonly string[] | null {
  if (given === undefined) return null
  const isValid =
    Array.isArray(given) &&
    given.length >= 1 &&
    given.length <= 50 &&
    new Set(given).size === given.length &&
    given.every(scope => available.includes(scope))
  if (!isValid) throw new Refusal('scope_invalid')
  return given
}

/** @returns null if the key does not expire @throws Refusal `expiry_invalid` */
function readDays(given: unknown): number | null {
  if (given === undefined || given === null) return null
  if (!Number.isInteger(given) || (given as number) < 1 || (given as number) > 366)
    throw new Refusal('expiry_invalid')
  return given as number
}
