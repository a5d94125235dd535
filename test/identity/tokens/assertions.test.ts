// Tests that identity assertions are reused for 30 s, but never for another user or upstream.
import { beforeEach, describe, expect, it } from 'vitest'
import { generatePrivateJwk, readPrivateJwk } from '../../../src/identity/keys/signing-key.ts'
import { createAssertions } from '../../../src/identity/tokens/assertions.ts'
import { createTokens } from '../../../src/identity/tokens/tokens.ts'
import { type MovableClock, movableClock } from '../../accounts/setup.ts'
import { userIdentity } from '../../gate/guards/a-guarded-request.ts'

const first = await readPrivateJwk((await generatePrivateJwk('ES256')).text)
const second = await readPrivateJwk((await generatePrivateJwk('ES256')).text)
const user = userIdentity({ id: 42, plan: 'pro' })

let clock: MovableClock
let current = first
const keys = {
  current: (): never => expect.unreachable('another key may already sign tokens'),
  forAssertions: () => current,
  getLoaded: () => current,
  find: async () => current,
  jwks: () => ({ keys: [] }),
  reload: async () => {},
}
function tokensNow() {
  return createTokens({
    keys,
    clock,
    issuer: 'peage',
    audience: 'app',
    accessTokenTtlMs: 900_000,
    refreshTokenTtlMs: 900_000,
  })
}
const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>

beforeEach(() => {
  clock = movableClock()
  current = first
})

describe('an assertion', () => {
  it('is reused for 30 s, and is then still valid for another 30 s', async () => {
    const assertions = createAssertions({ tokens: tokensNow(), keys, clock })
    const token = await assertions.tokenFor(user, 'app')
    const start = clock.now()
    clock.advance(29_999)
    expect(await assertions.tokenFor(user, 'app')).toBe(token)
    expect(Number(claimsOf(token).exp) * 1000 - clock.now()).toBeGreaterThanOrEqual(29_000)
    expect(Number(claimsOf(token).exp) * 1000 - start).toBeLessThanOrEqual(60_000)
    clock.advance(1)
    const next = await assertions.tokenFor(user, 'app')
    expect(next).not.toBe(token)
    // After the clock is set back, the cached assertion was issued in the future, so it is not reused.
    clock.advance(-1)
    expect(await assertions.tokenFor(user, 'app')).not.toBe(next)
  })

  it('differs for another user, plan, upstream or signing key', async () => {
    const assertions = createAssertions({ tokens: tokensNow(), keys, clock })
    const tokens = [
      await assertions.tokenFor(user, 'app'),
      await assertions.tokenFor(userIdentity({ id: 43, plan: 'pro' }), 'app'),
      await assertions.tokenFor(userIdentity({ id: 42, plan: 'free' }), 'app'),
      await assertions.tokenFor(user, 'other'),
    ]
    current = second
    tokens.push(await assertions.tokenFor(user, 'app'))
    expect(new Set(tokens).size).toBe(5)
    current = first
    expect(await assertions.tokenFor(user, 'app')).toBe(tokens[0])
    expect(tokens.map(token => claimsOf(token)).map(({ sub, plan, aud }) => [sub, plan, aud])).toEqual([
      ['42', 'pro', 'app'],
      ['43', 'pro', 'app'],
      ['42', 'free', 'app'],
      ['42', 'pro', 'other'],
      ['42', 'pro', 'app'],
    ])
  })

  it('contains the id and the scopes of a named API key, and is not reused for another credential', async () => {
    const assertions = createAssertions({ tokens: tokensNow(), keys, clock })
    const withKey = (id: string, scopes: string[] | null, isApiToken = false) => ({
      ...user,
      apiKey: { id, userId: 42, isApiToken, scopes, expiresAtMs: null },
    })
    const callers = [
      user,
      withKey('k1', null),
      withKey('k1', ['a', 'b:c']),
      withKey('k2', ['a', 'b:c']),
      withKey('k1', ['null']),
      withKey('api-token-1', null, true),
    ]
    const tokens = await Promise.all(callers.map(caller => assertions.tokenFor(caller, 'app')))
    expect(new Set(tokens).size).toBe(6)
    expect(tokens.map(token => claimsOf(token)).map(({ key_id, scope }) => [key_id, scope])).toEqual([
      [undefined, undefined],
      ['k1', undefined],
      ['k1', 'a b:c'],
      ['k2', 'a b:c'],
      ['k1', 'null'],
      [undefined, undefined],
    ])
  })

  it('is signed only once for concurrent calls; after a failure, the next call signs again', async () => {
    let signed = 0
    let fails = true
    const assertions = createAssertions({
      keys,
      clock,
      tokens: {
        async issueAssertion() {
          signed += 1
          if (fails) throw new Error('no entropy')
          return `token ${signed}`
        },
      },
    })
    await expect(assertions.tokenFor(user, 'app')).rejects.toThrow('no entropy')
    fails = false
    const all = await Promise.all(Array.from({ length: 50 }, () => assertions.tokenFor(user, 'app')))
    expect([new Set(all).size, signed]).toEqual([1, 2])
  })

  it('is evicted from a full cache if it is the oldest assertion, and is signed again when it is needed', async () => {
    let signed = 0
    const tokens = { issueAssertion: async () => `token ${++signed}` }
    const assertions = createAssertions({ keys, clock, tokens })
    for (let id = 1; id <= 10_001; id++) await assertions.tokenFor(userIdentity({ id }), 'app')
    await assertions.tokenFor(userIdentity({ id: 10_001 }), 'app')
    expect(signed).toBe(10_001)
    await assertions.tokenFor(userIdentity(), 'app')
    expect(signed).toBe(10_002)
  })

  it('is accepted neither as an access token nor as a refresh token, even with the same audience', async () => {
    const tokens = tokensNow()
    const token = await tokens.issueAssertion(user.user, 'app')
    expect(await tokens.verifyAccess(token)).toBe('type')
    expect(await tokens.verifyRefresh(token)).toBe('type')
    expect(await tokens.verifyRefreshOffline(token)).toBe('type')
  })
})
