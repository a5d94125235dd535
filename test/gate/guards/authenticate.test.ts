// Who a request is: the bearer first, then the key, and 401 for everything else that is presented (spec §5).
import { describe, expect, it } from 'vitest'
import { StorageError } from '../../../src/storage/database.ts'
import { claimsOf, endless } from '../../support/sessions.ts'
import { fieldOf, guardStage, told } from './a-chain.ts'

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const invalid = 'Bearer error="invalid_token"'

async function stage(options: Parameters<typeof guardStage>[0] = {}) {
  const made = guardStage(options)
  made.addUser(7, 'premium')
  made.addKey('peage_good', 70, 7)
  const [token, forged] = await Promise.all([made.tokenOf(7), made.forgedToken(7)])
  return { ...made, token, forged }
}

describe('on a route that requires a user', () => {
  it('a good token is its user, by the record and not by what the token says', async () => {
    const { route, requestOf, token } = await stage()
    const guards = route({ auth: 'required' })
    const request = requestOf({ headers: bearer(token) })
    expect(await guards(request)).toMatchObject({
      allowed: true,
      identity: { credential: 'access_token', sessionId: endless.id, user: { plan: 'premium' } },
    })
    // Kept for the log, though a later guard refuse.
    expect(request.identity).toMatchObject({ kind: 'user', user: { id: 7 } })
  })

  it('a token that is cached is decided at once, and the record is read once', async () => {
    const { route, requestOf, token, seen } = await stage()
    const guards = route({ auth: 'required' })
    await guards(requestOf({ headers: bearer(token) }))
    const again = guards(requestOf({ headers: bearer(token) }))
    expect(again).not.toBeInstanceOf(Promise)
    expect(told(await again)).toBe('access_token of 7')
    expect(seen.asked).toEqual(['user 7'])
  })

  it('nothing presented is 401 without an error in the challenge', async () => {
    const { route, requestOf } = await stage()
    const decision = await route({ auth: 'required' })(requestOf({}))
    expect([told(decision), fieldOf(decision, 'www-authenticate')]).toEqual(['401 token_invalid', 'Bearer'])
  })

  it.each(['forged', 'no token', 'Basic'])('%s is 401, and the challenge says so', async kind => {
    const { route, requestOf, forged } = await stage()
    const authorization = kind === 'Basic' ? 'Basic eDp5' : `Bearer ${kind === 'forged' ? forged : 'x'}`
    const decision = await route({ auth: 'required' })(requestOf({ headers: { authorization } }))
    expect([told(decision), fieldOf(decision, 'www-authenticate')]).toEqual(['401 token_invalid', invalid])
  })

  it('a bad token beside a good key is the key’s user, and the key’s use is noted', async () => {
    const { route, requestOf, forged, seen } = await stage()
    const headers = { ...bearer(forged), 'x-api-key': 'peage_good' }
    const decision = await route({ auth: 'required' })(requestOf({ headers }))
    expect(decision).toMatchObject({ identity: { credential: 'api_token', apiTokenId: 70 } })
    expect(seen.used).toEqual([70])
  })

  it('a good token beside a bad key is the token’s user, and no key is looked for', async () => {
    const { route, requestOf, token, seen } = await stage()
    const headers = { ...bearer(token), 'x-api-key': 'peage_bad' }
    expect(told(await route({ auth: 'required' })(requestOf({ headers })))).toBe('access_token of 7')
    expect(seen).toMatchObject({ asked: ['user 7'], used: [] })
  })

  it('a token of a user who is unknown or inactive is 401 user_not_found, a good key beside it or not', async () => {
    const { route, requestOf, addUser, tokenOf } = await stage()
    addUser(8, 'pro', { is_active: 0 })
    for (const id of [8, 9]) {
      const headers = { ...bearer(await tokenOf(id)), 'x-api-key': 'peage_good' }
      const decision = await route({ auth: 'required' })(requestOf({ headers }))
      expect([told(decision), fieldOf(decision, 'www-authenticate')]).toEqual(['401 user_not_found', invalid])
    }
  })

  it('a token whose user cannot be read fails with the store’s error, and a key beside it is not tried', async () => {
    const { route, requestOf, token, failing, guards, seen } = await stage()
    failing.users = new StorageError('down', undefined, undefined)
    const headers = { ...bearer(token), 'x-api-key': 'peage_good' }
    const request = requestOf({ headers })
    expect(await route({ auth: 'required' })(request)).toEqual({ allowed: false, thrown: failing.users })
    expect(seen.asked).toEqual(['user 7'])
    expect([guards.authenticate, request.told]).toEqual([
      { pass: 0, refuse: 0, error: 1 },
      ['authenticate', 'error'],
    ])
  })
})

describe('a key', () => {
  it('that is good is its user, at once where it is cached, and each use is noted', async () => {
    const { route, requestOf, seen } = await stage()
    const guards = route({ auth: 'required' })
    const headers = { 'x-api-key': ' peage_good\t' }
    expect(told(await guards(requestOf({ headers })))).toBe('api_token of 7')
    const again = guards(requestOf({ headers }))
    expect(again).not.toBeInstanceOf(Promise)
    expect(seen.used).toEqual([70, 70])
  })

  it('that is bad is 401, the challenge without an error; a client that goes on trying is 429', async () => {
    const { route, requestOf, clock } = await stage({ badKeys: 2 })
    const guards = route({ auth: 'required' })
    const ask = (key: string, peer: string) => guards(requestOf({ headers: { 'x-api-key': key }, peer }))
    const first = await ask('peage_a', '192.0.2.1')
    expect([told(first), fieldOf(first, 'www-authenticate')]).toEqual(['401 token_invalid', 'Bearer'])
    expect(told(await ask('peage_b', '192.0.2.1'))).toBe('401 token_invalid')
    const over = await ask('peage_c', '192.0.2.1')
    expect([told(over), fieldOf(over, 'retry-after')]).toEqual(['429 rate_limited', '60'])
    expect(fieldOf(over, 'ratelimit-policy')).toBe('"bad_keys";q=2;w=60')
    // Good keys go on, as do other clients, and the client itself in the next window.
    expect(told(await ask('peage_good', '192.0.2.1'))).toBe('api_token of 7')
    expect(told(await ask('peage_c', '192.0.2.2'))).toBe('401 token_invalid')
    clock.at += 60_000
    expect(told(await ask('peage_c', '192.0.2.1'))).toBe('401 token_invalid')
  })

  it('that cannot be checked is 401 that may be tried again; the operator hears why, and the client is not counted', async () => {
    const { route, requestOf, failing, guards, seen } = await stage({ badKeys: 1 })
    failing.apiTokens = new StorageError('down', undefined, undefined)
    const compiled = route({ auth: 'required' })
    for (let i = 0; i < 3; i++) {
      const decision = await compiled(requestOf({ headers: { 'x-api-key': 'peage_good' } }))
      expect(told(decision)).toBe('401 key_check_failed')
      expect([fieldOf(decision, 'retry-after'), fieldOf(decision, 'www-authenticate')]).toEqual([
        '1',
        'Bearer',
      ])
    }
    expect(seen.errors).toEqual(Array(3).fill(failing.apiTokens))
    // The store's fault, not the client's.
    expect(guards.authenticate).toEqual({ pass: 0, refuse: 0, error: 3 })
  })

  it('whose check breaks for another reason than the store is no bad key, but a fault of ours', async () => {
    const { route, requestOf, failing, seen } = await stage()
    failing.apiTokens = new TypeError('a bug')
    const decision = await route({ auth: 'required' })(requestOf({ headers: { 'x-api-key': 'peage_good' } }))
    expect([decision, seen.errors]).toEqual([{ allowed: false, thrown: failing.apiTokens }, []])
  })
})

describe('on a route where a user is optional', () => {
  it('nothing presented is anonymous, and nothing is asked', async () => {
    const { route, requestOf, seen } = await stage()
    for (const headers of [{}, { authorization: ' ' }, { 'x-api-key': '\t' }] as Record<string, string>[]) {
      expect(told(await route({ auth: 'optional' })(requestOf({ headers })))).toBe('anonymous')
    }
    expect(seen.asked).toEqual([])
  })

  it('what is presented and bad is 401, as if the route required it', async () => {
    const { route, requestOf, forged } = await stage()
    for (const headers of [bearer(forged), { authorization: 'Basic eDp5' }, { 'x-api-key': 'peage_bad' }]) {
      expect(told(await route({ auth: 'optional' })(requestOf({ headers })))).toBe('401 token_invalid')
    }
  })

  it('what is good is its user', async () => {
    const { route, requestOf, token } = await stage()
    expect(told(await route({ auth: 'optional' })(requestOf({ headers: bearer(token) })))).toBe(
      'access_token of 7',
    )
  })
})

it('on a public route nobody is asked who they are, whatever they present', async () => {
  const { route, requestOf, token, seen, guards } = await stage()
  const request = requestOf({ headers: { ...bearer(token), 'x-api-key': 'peage_good' } })
  expect(told(await route({ auth: 'none' })(request))).toBe('anonymous')
  expect([seen.asked, request.identity.kind, request.told]).toEqual([
    [],
    'anonymous',
    ['target', 'undefined'],
  ])
  expect(guards.authenticate).toEqual({ pass: 0, refuse: 0, error: 0 })
})

describe('where a logout ends access', () => {
  it('a token of an ended session is invalid, cached or not, and one of another goes on', async () => {
    const { route, requestOf, tokenOf, token, liveSessions } = await stage({ followsSessions: true })
    const guards = route({ auth: 'required' })
    liveSessions.add('other')
    const other = await tokenOf(7, { ...endless, id: 'other' })
    for (const text of [token, other]) {
      expect(told(await guards(requestOf({ headers: bearer(text) })))).toBe('access_token of 7')
    }
    liveSessions.delete('other')
    const ended = await guards(requestOf({ headers: bearer(other) }))
    expect([told(ended), fieldOf(ended, 'www-authenticate')]).toEqual(['401 token_invalid', invalid])
    expect(told(await guards(requestOf({ headers: bearer(token) })))).toBe('access_token of 7')
    const headers = { ...bearer(other), 'x-api-key': 'peage_good' }
    expect(told(await guards(requestOf({ headers })))).toBe('api_token of 7')
  })

  it('a token of 0.1, which names no session, is good until it expires', async () => {
    const { route, requestOf, tokenOf, liveSessions } = await stage({ followsSessions: true })
    liveSessions.clear()
    const old = await tokenOf(7, { ...endless, id: undefined as never })
    expect(claimsOf(old)).not.toHaveProperty('sid')
    expect(told(await route({ auth: 'required' })(requestOf({ headers: bearer(old) })))).toBe(
      'access_token of 7',
    )
  })

  it('and where it does not, the token outlives its session', async () => {
    const { route, requestOf, token, liveSessions } = await stage()
    liveSessions.clear()
    expect(told(await route({ auth: 'required' })(requestOf({ headers: bearer(token) })))).toBe(
      'access_token of 7',
    )
  })
})
