// Tests how a request is authenticated: by its access token, or by its API key if it has no valid token. Without a
// valid credential, it gets 401.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createAuthenticate } from '../../../src/gate/guards/authenticate.ts'
import { hashApiKey } from '../../../src/identity/api-keys/api-key.ts'
import { createTokenCache } from '../../../src/identity/cache/token-cache.ts'
import { createUserCache } from '../../../src/identity/cache/user-cache.ts'
import { anonymous, type Identity } from '../../../src/identity/identity.ts'
import { createKeyStore } from '../../../src/identity/keys/key-store.ts'
import { openSigningKeys } from '../../../src/identity/keys/signing-keys.ts'
import { createTokens, type Tokens } from '../../../src/identity/tokens/tokens.ts'
import { createCounters } from '../../../src/observability/metrics/counters.ts'
import type { Refusal } from '../../../src/refusals/refusal.ts'
import type { EmbeddedDatabase } from '../../../src/storage/pglite/pglite.ts'
import { createRateLimiter } from '../../../src/storage/rate-limiter.ts'
import type { Plan } from '../../../src/users/user.ts'
import { createUserStore, type UserWithEpoch } from '../../../src/users/user-store.ts'
import { openApiKeys } from '../../support/api-keys.ts'
import { openFeed } from '../../support/feed.ts'
import { lendDatabase } from '../../support/lent-database.ts'
import { claimsOf, endless } from '../../support/sessions.ts'
import { addUser } from '../../support/users.ts'
import { fieldOf, guardedRequest, told } from './a-guarded-request.ts'

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const invalid = 'Bearer error="invalid_token"'
const clock = { at: Date.UTC(2096, 1, 28, 12), now: () => clock.at }

let database: EmbeddedDatabase
let feed: ReturnType<typeof openFeed>
let tokens: Tokens
let dependencies: Parameters<typeof createAuthenticate>[0]
let authenticate: ReturnType<typeof createAuthenticate>
let user: UserWithEpoch
/** The access token of `user`. The API key of `user` is in `key`. */
let token: string
let key: string
let used: string[]
let errors: unknown[]
let liveSessions: Set<string>

beforeAll(async () => {
  database = await lendDatabase()
  feed = openFeed(database)
  await feed.catchUp()
  const keys = await openSigningKeys({
    ...{ store: createKeyStore(database), sealer: undefined, clock },
    onError: () => {},
  })
  const ttl = { accessTokenTtlMs: 900_000, refreshTokenTtlMs: 900_000 }
  tokens = createTokens({ keys, clock, issuer: 'peage', audience: 'peage', ...ttl })
  dependencies = {
    tokens: createTokenCache({ tokens, keys, clock, maxTokens: 100 }),
    users: createUserCache({
      ...{ users: createUserStore(database), apiKeys: openApiKeys(database) },
      ...{ feed, maxUsers: 100, results: createCounters().identityCache },
    }),
    sessions: undefined,
    lastUsed: { record: id => used.push(id) },
    badKeys: createRateLimiter('bad_keys', { limit: 2, windowMs: 60_000 }, { clock }),
    onApiKeyError: error => errors.push(error),
    clock,
  }
  authenticate = createAuthenticate(dependencies)
})
afterAll(async () => {
  await feed?.close()
  await database?.close()
})
beforeEach(async () => {
  // Starts a new rate-limit window, so that each test starts with unused limits.
  clock.at += 60_000
  used = []
  errors = []
  liveSessions = new Set([endless.id])
  user = await newUser('premium')
  token = await tokenOf(user.id)
  key = `peage_${randomBytes(8).toString('hex')}`
  await database.query('insert into api_tokens (user_id, token_hash) values ($1, $2)', [
    ...[user.id, hashApiKey(key)],
  ])
})

async function newUser(plan: Plan): Promise<UserWithEpoch> {
  return (await createUserStore(database).findWithEpoch(await addUser(database, { plan }))) as UserWithEpoch
}

function tokenOf(id: number, session = endless): Promise<string> {
  return tokens.issueAccess({ id, email: 'claimed@example.com', plan: 'pro' }, session)
}

/** Returns the access token with a wrong signature. */
const forged = () => `${token.slice(0, token.lastIndexOf('.'))}.${'A'.repeat(86)}`

/** @param auth the route's `auth` @returns the decision, and whether the guard returned it synchronously */
async function ask(
  headers: Record<string, string>,
  { auth = 'required' as Parameters<typeof authenticate>[0], peer = '192.0.2.1', guards = authenticate } = {},
) {
  const request = guardedRequest(headers, peer)
  let isAtOnce = false
  try {
    const result = guards(auth)(request)
    isAtOnce = !(result instanceof Promise)
    const identity = (await result) as Identity
    return { decision: { allowed: true as const, identity }, isAtOnce, request }
  } catch (thrown) {
    return { decision: { allowed: false as const, thrown: thrown as Refusal }, isAtOnce, request }
  }
}

async function expect401(
  asked: ReturnType<typeof ask>,
  code: string,
  reason: string,
  challenge: string,
): Promise<void> {
  const { decision } = await asked
  expect([told(decision), fieldOf(decision, 'www-authenticate')]).toEqual([`401 ${code}`, challenge])
  expect(decision).toMatchObject({ thrown: { reason } })
}

describe('an access token', () => {
  it('identifies its user, and the user’s data comes from the store, not from the claims of the token', async () => {
    const { decision, request } = await ask(bearer(token))
    expect(decision).toEqual({
      allowed: true,
      identity: { kind: 'user', user, sessionId: endless.id, apiKey: undefined },
    })
    expect(user.plan).toBe('premium')
    // The guard sets the identity on the request, so the log contains the user even if a later guard refuses.
    expect(request.identity).toMatchObject({ user: { id: user.id } })
  })

  it('is accepted synchronously after its first use, even if the first request wrote the scheme `Bearer` differently', async () => {
    await ask({ authorization: `bearer  ${token}` })
    const { decision, isAtOnce } = await ask(bearer(token))
    expect([told(decision), isAtOnce]).toEqual([`access_token of ${user.id}`, true])
  })

  it.each([
    ['forged', () => bearer(forged()), 'signature'],
    ['malformed', () => bearer('x'), 'malformed'],
    ['of another scheme', () => ({ authorization: 'Basic eDp5' }), 'malformed'],
  ] as const)(
    'is refused with 401 and the challenge invalid_token if it is %s',
    async (_, headers, reason) => {
      for (const auth of ['required', 'optional'] as const)
        await expect401(ask(headers(), { auth }), 'token_invalid', reason, invalid)
    },
  )

  it('has precedence over an API key in the same request, which is used only if the token is invalid', async () => {
    const withBadKey = await ask({ ...bearer(token), 'x-api-key': 'peage_bad' })
    expect([told(withBadKey.decision), used]).toEqual([`access_token of ${user.id}`, []])
    const { decision } = await ask({ ...bearer(forged()), 'x-api-key': key })
    expect(decision).toMatchObject({ identity: { apiKey: { id: used[0], isApiToken: true }, user } })
    expect(used).toHaveLength(1)
  })

  it('is refused with 401 user_not_found for an unknown or inactive user, even with a valid API key', async () => {
    const inactive = await newUser('pro')
    await database.query('update users set is_active = 0 where id = $1', [inactive.id])
    for (const id of [inactive.id, 1_000_000]) {
      const headers = { ...bearer(await tokenOf(id)), 'x-api-key': key }
      const { decision } = await ask(headers)
      expect([told(decision), fieldOf(decision, 'www-authenticate')]).toEqual(['401 user_not_found', invalid])
    }
  })
})

describe('an API key', () => {
  it('identifies its user, from the second use on without waiting, and each use is recorded', async () => {
    const headers = { 'x-api-key': ` ${key}\t` }
    expect(told((await ask(headers)).decision)).toBe(`${used[0]} of ${user.id}`)
    expect(await ask(headers)).toMatchObject({ isAtOnce: true, request: { identity: { kind: 'user' } } })
    expect([used.length, used[0]]).toEqual([2, used[1]])
  })

  it('is refused with 401 if it is unknown, and with 429 after repeated attempts of the same client', async () => {
    const from = (peer: string, text: string) => ask({ 'x-api-key': text }, { peer })
    for (const text of ['peage_a', 'peage_b'])
      await expect401(from('2001:db8::1', text), 'token_invalid', 'unknown', 'Bearer')
    // All addresses of a /64 network count as one client.
    const { decision } = await from('2001:db8::2', 'peage_c')
    expect([told(decision), fieldOf(decision, 'retry-after')]).toEqual(['429 rate_limited', '60'])
    expect(fieldOf(decision, 'ratelimit-policy')).toBe('"bad_keys";q=2;w=60')
    // Valid keys of this client are still accepted, and other clients still get 401. In the next window, unknown keys
    // of this client get 401 again instead of 429.
    expect(told((await from('2001:db8::2', key)).decision)).toBe(`${used[0]} of ${user.id}`)
    expect(told((await from('192.0.2.2', 'peage_c')).decision)).toBe('401 token_invalid')
    clock.at += 60_000
    expect(told((await from('2001:db8::2', 'peage_c')).decision)).toBe('401 token_invalid')
  })

  it('if its check fails because of a bug, causes an internal error instead of 401', async () => {
    const bug = new TypeError('a bug')
    const users = { ...dependencies.users, findOwner: () => Promise.reject(bug) }
    const { decision } = await ask(
      { 'x-api-key': key },
      { guards: createAuthenticate({ ...dependencies, users }) },
    )
    expect([decision, errors]).toEqual([{ allowed: false, thrown: bug }, []])
  })
})

it('a request without a credential gets 401 if the route requires auth, and is anonymous if auth is optional', async () => {
  for (const headers of [{}, { authorization: ' ' }, { 'x-api-key': '\t' }] as Record<string, string>[]) {
    await expect401(ask(headers), 'token_invalid', 'missing', 'Bearer')
    const { decision, isAtOnce } = await ask(headers, { auth: 'optional' })
    expect([told(decision), isAtOnce]).toEqual(['anonymous', true])
  }
})

it('if a request has a credential, a route with optional auth checks it like a route with required auth', async () => {
  const optional = { auth: 'optional' as const }
  expect(told((await ask(bearer(token), optional)).decision)).toBe(`access_token of ${user.id}`)
  expect(told((await ask({ 'x-api-key': key }, optional)).decision)).toBe(`${used[0]} of ${user.id}`)
  expect(told((await ask({ 'x-api-key': 'peage_bad' }, optional)).decision)).toBe('401 token_invalid')
})

it('a public route does not read the credential of a request', async () => {
  const { decision, isAtOnce, request } = await ask({ ...bearer(token), 'x-api-key': key }, { auth: 'none' })
  expect([told(decision), isAtOnce, request.identity, used]).toEqual(['anonymous', true, anonymous, []])
})

describe('with `auth.logout_ends_access`', () => {
  const following = () =>
    createAuthenticate({
      ...dependencies,
      sessions: { isLive: (_, sessionId) => liveSessions.has(sessionId) },
    })

  it('a token of an ended session is refused, even if the token is cached', async () => {
    const guards = following()
    liveSessions.add('other')
    const other = await tokenOf(user.id, { ...endless, id: 'other' })
    expect(told((await ask(bearer(other), { guards })).decision)).toBe(`access_token of ${user.id}`)
    liveSessions.delete('other')
    await expect401(ask(bearer(other), { guards }), 'token_invalid', 'session_ended', invalid)
    expect(told((await ask(bearer(token), { guards })).decision)).toBe(`access_token of ${user.id}`)
    const withKey = await ask({ ...bearer(other), 'x-api-key': key }, { guards })
    expect(told(withKey.decision)).toBe(`${used[0]} of ${user.id}`)
    // Without `auth.logout_ends_access`, the token stays valid after its session has ended.
    expect(told((await ask(bearer(other))).decision)).toBe(`access_token of ${user.id}`)
  })

  it('a token of version 0.1, which contains no session, is accepted until it expires', async () => {
    liveSessions.clear()
    const old = await tokenOf(user.id, { ...endless, id: undefined as never })
    expect(claimsOf(old)).not.toHaveProperty('sid')
    expect(told((await ask(bearer(old), { guards: following() })).decision)).toBe(
      `access_token of ${user.id}`,
    )
  })
})

// This test must be the last, because it closes the store.
it('if the store is down, a request with a token fails, and a request with an API key gets 401 key_check_failed', async () => {
  await database.close()
  const down = expect.objectContaining({ name: 'StorageError' })
  const { decision } = await ask({ ...bearer(token), 'x-api-key': key })
  expect(decision).toEqual({ allowed: false, thrown: down })
  // While the store is down, the gateway cannot look up keys. Therefore, it counts none of these requests as a request
  // with an unknown key. If it counted them, the last request would get 429.
  for (let i = 0; i < 3; i += 1) {
    const refused = await ask({ 'x-api-key': key })
    expect(told(refused.decision)).toBe('401 key_check_failed')
    expect(fieldOf(refused.decision, 'retry-after')).toBe('1')
    expect(fieldOf(refused.decision, 'www-authenticate')).toBe('Bearer')
  }
  expect([errors, used]).toEqual([[down, down, down], []])
})
