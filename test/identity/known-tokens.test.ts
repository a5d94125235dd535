// Access tokens that were found good: not verified again, and good no longer than they would be anew.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Database } from '../../src/backing/database.ts'
import { createKeyStore } from '../../src/identity/key-store.ts'
import { createKnownTokens, type KnownTokens } from '../../src/identity/known-tokens.ts'
import { openSigningKeys, type SigningKeys } from '../../src/identity/signing-keys.ts'
import { createTokens, type Tokens } from '../../src/identity/tokens.ts'
import { type MovableClock, movableClock } from '../accounts/setup.ts'
import { embeddedDatabase } from '../support/databases.ts'

const minute = 60_000

describe('known tokens', () => {
  let database: Database
  let clock: MovableClock
  let keys: SigningKeys
  let tokens: Tokens
  let known: KnownTokens
  let verified: number

  beforeAll(async () => {
    database = await embeddedDatabase()
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
      accessTokenTtl: 15 * minute,
      refreshTokenTtl: 60 * minute,
    })
    known = create(100)
    verified = 0
  })

  function create(most: number): KnownTokens {
    const verifyAccess: Tokens['verifyAccess'] = token => {
      verified += 1
      return tokens.verifyAccess(token)
    }
    return createKnownTokens({ tokens: { verifyAccess }, keys, clock, most })
  }

  const issue = (id: number) => tokens.issueAccess({ id, email: `user${id}@example.com`, plan: 'free' })

  it('are verified once, and then known at once', async () => {
    const token = await issue(7)
    expect(await known.verify(token)).toMatchObject({ userId: 7 })
    expect(known.verify(token)).toMatchObject({ userId: 7 })
    expect(verified).toBe(1)
  })

  it('are good until the moment at which they expire, and not in it', async () => {
    const token = await issue(7)
    const { expiresAt } = (await known.verify(token)) as { expiresAt: number }
    clock.advance(expiresAt - 1 - clock.now())
    expect(known.verify(token)).toMatchObject({ userId: 7 })
    clock.advance(1)
    expect(await known.verify(token)).toBe('invalid')
    expect(await known.verify(token)).toBe('invalid')
  })

  it('go with their key', async () => {
    const token = await issue(7)
    await known.verify(token)
    await database.query('delete from signing_keys')
    await keys.reload()
    expect(await known.verify(token)).toBe('invalid')
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
      `${token} `,
      ` ${token}`,
      token.slice(0, -1),
      `${token}A`,
      token.toLowerCase(),
    ]) {
      expect(await known.verify(like)).toBe('invalid')
      expect(await known.verify(like)).toBe('invalid')
    }
    expect(known.verify(token)).toMatchObject({ userId: 7 })
  })

  it('that are not good are not remembered, nor are those of another kind', async () => {
    const refresh = (await tokens.issueRefresh(7)).token
    for (const bad of [
      '',
      'nonsense',
      refresh,
      await tokens.issueAssertion({ id: 7, plan: 'free' }, 'peage'),
    ]) {
      expect(await known.verify(bad)).toBe('invalid')
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
