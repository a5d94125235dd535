// Tests that cached access tokens are verified only once, and are not valid for longer than uncached tokens.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTokenCache, type TokenCache } from '../../../src/identity/cache/token-cache.ts'
import { createKeyStore } from '../../../src/identity/keys/key-store.ts'
import { openSigningKeys, type SigningKeys } from '../../../src/identity/keys/signing-keys.ts'
import { createTokens, type Tokens } from '../../../src/identity/tokens/tokens.ts'
import type { Database } from '../../../src/storage/database.ts'
import { type MovableClock, movableClock } from '../../accounts/setup.ts'
import { lendDatabase } from '../../support/lent-database.ts'
import { endless } from '../../support/sessions.ts'

const minute = 60_000

describe('cached tokens', () => {
  let database: Database
  let clock: MovableClock
  let keys: SigningKeys
  let tokens: Tokens
  let known: TokenCache
  let verified: number
  /** Called at the end of every verification. The verification completes only when the returned promise resolves. */
  let atEnd: () => Promise<void>

  beforeAll(async () => {
    database = await lendDatabase()
  })
  afterAll(() => database?.close())
  beforeEach(async () => {
    clock = movableClock()
    keys = await openSigningKeys({
      store: createKeyStore(database),
      sealer: undefined,
      clock,
      onError: () => {},
    })
    tokens = createTokens({
      keys,
      clock,
      issuer: 'peage',
      audience: 'peage',
      accessTokenTtlMs: 15 * minute,
      refreshTokenTtlMs: 60 * minute,
    })
    known = create(100)
    verified = 0
    atEnd = async () => {}
  })

  function create(maxTokens: number): TokenCache {
    const verifyAccess: Tokens['verifyAccess'] = async token => {
      verified += 1
      const result = await tokens.verifyAccess(token)
      await atEnd()
      return result
    }
    return createTokenCache({ tokens: { verifyAccess }, keys, clock, maxTokens })
  }

  /**
   * Pauses verifications at their end until `release` is called. `reached` resolves when the first verification is
   * paused.
   */
  function hold() {
    let release = () => {}
    const released = new Promise<void>(resolve => {
      release = resolve
    })
    const reached = new Promise<void>(resolve => {
      atEnd = () => {
        resolve()
        return released
      }
    })
    return { reached, release: () => release() }
  }

  const issue = (id: number) =>
    tokens.issueAccess({ id, email: `user${id}@example.com`, plan: 'free' }, endless)

  it('are returned without another verification until they expire', async () => {
    const token = await issue(7)
    expect(known.get(token)).toBeUndefined()
    await known.verify(token)
    expect(known.get(token)).toMatchObject({ userId: 7 })
    expect([`${token}x`, token.slice(1), ` ${token}`, ''].map(known.get)).toEqual(Array(4).fill(undefined))
    clock.advance(15 * minute)
    expect(known.get(token)).toBeUndefined()
    expect(verified).toBe(1)
  })

  it('are verified once per token, even if many calls are concurrent', async () => {
    const issued = await Promise.all([1, 2, 3].map(issue))
    const calls = [...issued, 'nonsense', ...issued].map(token => known.verify(token))
    const answers = (await Promise.all(calls)).map(answer => typeof answer !== 'string' && answer.userId)
    expect(answers).toEqual([1, 2, 3, false, 1, 2, 3])
    expect(verified).toBe(4)
  })

  it('do not include invalid tokens, so a later call verifies an invalid token again', async () => {
    const calls = Array.from({ length: 100 }, () => known.verify('nonsense'))
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['malformed']))
    expect(verified).toBe(1)
    await known.verify('nonsense')
    expect(verified).toBe(2)
  })

  it('are verified again after a verification ended with an error; this error rejects all waiting calls', async () => {
    const token = await issue(7)
    atEnd = async () => {
      throw new Error('away')
    }
    const calls = [known.verify(token), known.verify(token)]
    for (const one of calls) await expect(one).rejects.toThrow('away')
    expect(verified).toBe(1)
    atEnd = async () => {}
    expect(await known.verify(token)).toMatchObject({ userId: 7 })
  })

  it('become invalid for all waiting calls if their signing key is deleted during the verification', async () => {
    const { kid } = keys.current()
    const token = await issue(7)
    const { reached, release } = hold()
    const before = known.verify(token)
    await reached
    const [stored] = await database.query<object>('select * from signing_keys')
    await database.query('delete from signing_keys')
    await keys.reload()
    const after = known.verify(token)
    release()
    expect(await Promise.all([before, after])).toEqual(['key_unknown', 'key_unknown'])
    expect(verified).toBe(1)
    // The result must not be cached. After the key is restored, the token must be verified again.
    await database.query(
      `insert into signing_keys select * from json_populate_record(null::signing_keys, $1)`,
      [JSON.stringify(stored)],
    )
    await keys.reload()
    expect(keys.getLoaded(kid)).toBeDefined()
    expect(await known.verify(token)).toMatchObject({ userId: 7 })
    expect(verified).toBe(2)
  })

  it('become invalid for all waiting calls if they expire during the verification', async () => {
    const token = await issue(7)
    const { reached, release } = hold()
    const before = known.verify(token)
    await reached
    clock.advance(15 * minute)
    const after = known.verify(token)
    release()
    expect(await Promise.all([before, after])).toEqual(['expired', 'expired'])
  })

  it('are valid until one millisecond before they expire', async () => {
    const token = await issue(7)
    const { expiresAtMs } = (await known.verify(token)) as { expiresAtMs: number }
    clock.advance(expiresAtMs - 1 - clock.now())
    expect(known.verify(token)).toMatchObject({ userId: 7 })
    clock.advance(1)
    expect(await known.verify(token)).toBe('expired')
    expect(await known.verify(token)).toBe('expired')
  })

  it('become invalid when their signing key is deleted', async () => {
    const token = await issue(7)
    await known.verify(token)
    await database.query('delete from signing_keys')
    await keys.reload()
    expect(await known.verify(token)).toBe('key_unknown')
    const next = await issue(7)
    expect(await known.verify(next)).toMatchObject({ userId: 7 })
  })

  it('are found only by their full text, so similar tokens are not accepted', async () => {
    const token = await issue(7)
    await known.verify(token)
    const [header, payload, signature = ''] = token.split('.')
    const other = (await issue(8)).split('.')
    for (const like of [
      `${header}.${payload}.${other[2]}`,
      `${header}.${other[1]}.${signature}`,
      `${header}.${payload}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
      `${token} `,
      ` ${token}`,
      token.slice(0, -1),
      `${token}A`,
      token.toLowerCase(),
    ]) {
      expect(await known.verify(like)).toBeTypeOf('string')
      expect(await known.verify(like)).toBeTypeOf('string')
    }
    expect(known.verify(token)).toMatchObject({ userId: 7 })
  })

  it('do not include malformed tokens or tokens of another type', async () => {
    const refresh = (await tokens.issueRefresh(7, endless)).token
    for (const bad of [
      '',
      'nonsense',
      refresh,
      await tokens.issueAssertion({ id: 7, plan: 'free' }, 'peage'),
    ]) {
      expect(await known.verify(bad)).toBeTypeOf('string')
      expect(known.verify(bad)).toBeInstanceOf(Promise)
    }
  })

  it('are limited in number, and the least recently used token is evicted first', async () => {
    known = create(2)
    const [first, second, third] = [await issue(1), await issue(2), await issue(3)]
    await known.verify(first)
    await known.verify(second)
    known.verify(first)
    await known.verify(third)
    expect(verified).toBe(3)
    expect(known.verify(first)).toMatchObject({ userId: 1 })
    expect(await known.verify(second)).toMatchObject({ userId: 2 })
    expect(verified).toBe(4)
  })
})
