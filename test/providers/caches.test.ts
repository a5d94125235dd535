import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  claimsOf,
  type Issuer,
  makeKey,
  openProvider,
  paths,
  sendJson,
  signToken,
  startIssuer,
  type TestKey,
} from './issuer.ts'

const attempt = { redirectUri: 'https://api.example.com/callback', state: 's', nonce: 'n', codeVerifier: 'v' }
const second = 1_000
const minute = 60 * second
const unavailable = expect.objectContaining({ reason: 'provider_unavailable' })
const invalid = expect.objectContaining({ reason: 'id_token_invalid' })

const keys = await Promise.all(['one', 'two', 'three'].map(kid => makeKey(kid)))
const [one, two, three] = keys as [TestKey, TestKey, TestKey]

let idp: Issuer
beforeEach(async () => {
  idp = await startIssuer([one])
})
afterEach(() => idp.close())

function open() {
  const { provider, clock, outcomes } = openProvider(idp.config())
  return {
    clock,
    outcomes,
    start: () => provider.authorizationUrl(attempt),
    /** Verifies a new ID token that is signed with the key. */
    verify: async (key: Pick<TestKey, 'kid' | 'alg' | 'privateKey'>) =>
      provider.verifyIdToken(await signToken(key, claimsOf(idp, clock.now())), undefined),
    fetches: () => [idp.count(paths.discovery), idp.count(paths.keys)],
  }
}

/** Makes requests to a path fail until the returned function is called. */
function breakPath(path: string): () => void {
  idp.responses.set(path, sendJson({}, 503))
  return () => void idp.responses.delete(path)
}

describe('discovery', () => {
  it('is fetched once an hour', async () => {
    const { start, clock, fetches } = open()
    await start()
    clock.move(60 * minute - 1)
    await start()
    expect(fetches()).toEqual([1, 0])
    clock.move(1)
    await start()
    expect(fetches()).toEqual([2, 0])
  })

  it('is used for at most an hour, even if it cannot be fetched again', async () => {
    const { start, clock } = open()
    await start()
    breakPath(paths.discovery)
    clock.move(60 * minute)
    await expect(start()).rejects.toEqual(unavailable)
  })

  it('is fetched once for concurrent requests', async () => {
    const { start, verify, fetches } = open()
    await Promise.all([
      ...Array.from({ length: 20 }, start),
      ...Array.from({ length: 20 }, () => verify(one)),
    ])
    expect(fetches()).toEqual([1, 1])
  })

  it('is not fetched again for 5 s after a failure; in this time, each sign-in fails immediately', async () => {
    const { start, clock, fetches } = open()
    const repair = breakPath(paths.discovery)
    await expect(start()).rejects.toEqual(unavailable)
    repair()
    clock.move(5 * second - 1)
    await expect(start()).rejects.toEqual(unavailable)
    expect(fetches()).toEqual([1, 0])
    clock.move(1)
    await start()
    expect(fetches()).toEqual([2, 0])
  })

  it('is fetched again if the clock was set back', async () => {
    const { start, clock, fetches } = open()
    await start()
    clock.move(-minute)
    await start()
    expect(fetches()).toEqual([2, 0])
  })
})

describe('the keys of a provider', () => {
  it('are fetched again after 10 minutes, so that removed keys no longer work', async () => {
    const { verify, clock, fetches } = open()
    await verify(one)
    idp.jwks.keys = [two.jwk]
    clock.move(10 * minute - 1)
    await verify(one)
    expect(fetches()).toEqual([1, 1])
    clock.move(1)
    await expect(verify(one)).rejects.toEqual(invalid)
  })

  it.each([paths.keys, paths.discovery])('work for an hour after a fetch, even if %s fails', async path => {
    const { start, verify, clock } = open()
    await start()
    clock.move(30 * minute)
    await verify(one)
    breakPath(path)
    clock.move(60 * minute - 1)
    await verify(one)
    clock.move(1)
    await expect(verify(one)).rejects.toEqual(unavailable)
  })

  it('are fetched at most once in 5 s after a failure, and meanwhile the old keys still work', async () => {
    const { verify, clock, fetches } = open()
    await verify(one)
    breakPath(paths.keys)
    clock.move(10 * minute)
    await verify(one)
    clock.move(5 * second - 1)
    await verify(one)
    expect(fetches()).toEqual([1, 2])
    clock.move(1)
    await verify(one)
    expect(fetches()).toEqual([1, 3])
  })

  it('are not replaced by a malformed document', async () => {
    const { verify, clock, outcomes } = open()
    await verify(one)
    idp.responses.set(paths.keys, sendJson({ keys: [7] }))
    clock.move(10 * minute)
    await verify(one)
    expect(outcomes).toEqual(['ok', 'ok', 'invalid'])
  })
})

describe('an unknown key name', () => {
  it('makes the gateway fetch the keys, so that a new key works immediately', async () => {
    const { verify, fetches } = open()
    await verify(one)
    idp.jwks.keys = [one.jwk, two.jwk]
    await verify(two)
    await verify(one)
    expect(fetches()).toEqual([1, 2])
  })

  it('makes the gateway fetch the keys only once in 30 s', async () => {
    const { verify, clock, fetches } = open()
    await verify(one)
    clock.move(9 * minute)
    await expect(verify(two)).rejects.toEqual(invalid)
    clock.move(30 * second - 1)
    for (const key of [two, three, { ...one, kid: 'x' }]) await expect(verify(key)).rejects.toEqual(invalid)
    expect(fetches()).toEqual([1, 2])
    idp.jwks.keys = [one.jwk, two.jwk]
    clock.move(1)
    await verify(two)
    expect(fetches()).toEqual([1, 3])
  })

  it('makes the gateway fetch the keys even if they were fetched a moment ago for another reason', async () => {
    const { verify, fetches } = open()
    await expect(verify(two)).rejects.toEqual(invalid)
    expect(fetches()).toEqual([1, 2])
  })

  it('makes the gateway fetch the keys only once for concurrent requests, and all of them get the new key', async () => {
    const { verify, fetches } = open()
    await verify(one)
    idp.jwks.keys = [one.jwk, two.jwk]
    await Promise.all(Array.from({ length: 20 }, () => verify(two)))
    expect(fetches()).toEqual([1, 2])
  })

  it('causes provider_unavailable if the fetch fails, but tokens with a known key name are still accepted', async () => {
    const { verify, clock, fetches } = open()
    await verify(one)
    breakPath(paths.keys)
    await expect(verify(two)).rejects.toEqual(unavailable)
    await verify(one)
    clock.move(30 * second - 1)
    await expect(verify(two)).rejects.toEqual(unavailable)
    expect(fetches()).toEqual([1, 2])
  })

  it('causes no fetch in the first 5 s after a failed fetch, but can cause a fetch after these 5 s', async () => {
    const { verify, clock, fetches } = open()
    await verify(one)
    const repair = breakPath(paths.keys)
    clock.move(10 * minute)
    await verify(one)
    expect(fetches()).toEqual([1, 2])
    await expect(verify(two)).rejects.toEqual(unavailable)
    expect(fetches()).toEqual([1, 2])
    repair()
    clock.move(5 * second)
    await verify(one)
    idp.jwks.keys = [one.jwk, two.jwk]
    await verify(two)
    expect(fetches()).toEqual([1, 4])
  })

  it('is not the same as a missing key name, so a token without a key name causes no fetch', async () => {
    const { verify, fetches } = open()
    await verify(one)
    await expect(verify({ ...two, kid: undefined as unknown as string })).rejects.toEqual(invalid)
    expect(fetches()).toEqual([1, 1])
  })
})
