// Cached access tokens: verified once, and valid no longer than an uncached one.
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

describe('known tokens', () => {
  let database: Database
  let clock: MovableClock
  let keys: SigningKeys
  let tokens: Tokens
  let known: TokenCache
  let verified: number
  /** Delays the end of every verification. */
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

  /** Holds the next verification at its end; `reached` resolves when only that is left. */
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

  it('are recalled once they are verified, and no longer than they are good', async () => {
    const token = await issue(7)
    expect(known.get(token)).toBeUndefined()
    await known.verify(token)
    expect(known.get(token)).toMatchObject({ userId: 7 })
    expect([`${token}x`, token.slice(1), ` ${token}`, ''].map(known.get)).toEqual(Array(4).fill(undefined))
    clock.advance(15 * minute)
    expect(known.get(token)).toBeUndefined()
    expect(verified).toBe(1)
  })

  it('are verified each by itself, whoever else asks at the same time', async () => {
    const issued = await Promise.all([1, 2, 3].map(issue))
    const calls = [...issued, 'nonsense', ...issued].map(token => known.verify(token))
    const answers = (await Promise.all(calls)).map(answer => typeof answer !== 'string' && answer.userId)
    expect(answers).toEqual([1, 2, 3, false, 1, 2, 3])
    expect(verified).toBe(4)
  })

  it('that are not good are refused to all who ask at once, and verified again for the next', async () => {
    const calls = Array.from({ length: 100 }, () => known.verify('nonsense'))
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['malformed']))
    expect(verified).toBe(1)
    await known.verify('nonsense')
    expect(verified).toBe(2)
  })

  it('whose verification fails are verified again for the next, and all who waited are told', async () => {
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

  it('whose key goes while they are verified are refused to all who wait, and not put back', async () => {
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
    // The key returns: the token must be verified again.
    await database.query(
      `insert into signing_keys select * from json_populate_record(null::signing_keys, $1)`,
      [JSON.stringify(stored)],
    )
    await keys.reload()
    expect(keys.getLoaded(kid)).toBeDefined()
    expect(await known.verify(token)).toMatchObject({ userId: 7 })
    expect(verified).toBe(2)
  })

  it('that expire while they are verified are refused to all who wait', async () => {
    const token = await issue(7)
    const { reached, release } = hold()
    const before = known.verify(token)
    await reached
    clock.advance(15 * minute)
    const after = known.verify(token)
    release()
    expect(await Promise.all([before, after])).toEqual(['expired', 'expired'])
  })

  it('are good until the moment at which they expire, and not in it', async () => {
    const token = await issue(7)
    const { expiresAtMs } = (await known.verify(token)) as { expiresAtMs: number }
    clock.advance(expiresAtMs - 1 - clock.now())
    expect(known.verify(token)).toMatchObject({ userId: 7 })
    clock.advance(1)
    expect(await known.verify(token)).toBe('expired')
    expect(await known.verify(token)).toBe('expired')
  })

  it('go with their key', async () => {
    const token = await issue(7)
    await known.verify(token)
    await database.query('delete from signing_keys')
    await keys.reload()
    expect(await known.verify(token)).toBe('key_unknown')
    const next = await issue(7)
    expect(await known.verify(next)).toMatchObject({ userId: 7 })
  })

  it('are known by all of their text: nothing like one is taken for it', async () => {
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

  it('that are not good are not remembered, nor are those of another kind', async () => {
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

  it('are as many as was said, the one used longest ago goes first', async () => {
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
