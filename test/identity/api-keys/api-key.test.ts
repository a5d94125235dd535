import { createHash, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashApiKey, makeApiKey } from '../../../src/identity/api-keys/api-key.ts'
import { apiTokenIdOf } from '../../../src/identity/api-keys/api-key-store.ts'
import type { Database } from '../../../src/storage/database.ts'
import { createUserStore } from '../../../src/users/user-store.ts'
import { type ApiKeyStores, openApiKeys } from '../../support/api-keys.ts'
import { describeOverSetups } from '../../support/setups.ts'
import { addUser } from '../../support/users.ts'

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex')
/** Returns the text that Node decodes from a header with this value. Each byte becomes one character. */
const received = (value: string) => Buffer.from(value).toString('latin1')

describe('the hash of an API key', () => {
  it('is the SHA-256 of the received bytes, even if they are not ASCII', () => {
    expect(hashApiKey('peage_abc')).toBe(sha256('peage_abc'))
    expect(hashApiKey(received('clé'))).toBe(sha256('clé'))
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), key => {
        fc.pre(!/^[\t-\r ]|[\t-\r ]$/.test(key))
        expect(hashApiKey(received(key))).toBe(sha256(Buffer.from(key)))
      }),
    )
  })

  it('ignores white space around the key, but not inside it', () => {
    expect(hashApiKey(' \t\r\n\v\fa b \t')).toBe(sha256('a b'))
  })

  it('includes a byte 0xA0 at the end of the key, because in UTF-8 this byte is a part of à and not a space', () => {
    expect(hashApiKey(received('à'))).toBe(sha256('à'))
    expect(hashApiKey(received(' \u00a0 '))).toBe(sha256('\u00a0'))
  })

  it('takes less than 10 ms for 16 KB of white space', () => {
    const begun = performance.now()
    for (let i = 0; i < 100; i += 1) hashApiKey(`a${' '.repeat(16_000)}b`)
    expect(performance.now() - begun).toBeLessThan(1000)
  })
})

describe('a new API key', () => {
  const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const bytesFor = (text: string) => Uint8Array.from(text, character => base62.indexOf(character))

  // The checksums were computed with zlib.crc32 of Python 3, not with the tested code. The input is the random part (30
  // characters). The output is written in base62.
  it.each([
    ['0123456789ABCDEFGHIJKLMNOPQRST', '4PMbyp'],
    ['000000000000000000000000000000', '2C8GjS'],
    ['Zm9vYmFyQmF6MTIzNDU2Nzg5MFhZWj', '1lsVNX'],
    ['ibqMmr7UXV4Cg0wwlzIduSXdCObPIR', '000LOc'],
  ])('with the random part %s ends with the checksum %s', (random, checksum) => {
    expect(makeApiKey(() => bytesFor(random))).toBe(`peage_${random}${checksum}`)
  })

  it('is unique, and has a format that secret scanners can find', () => {
    const keys = new Set(Array.from({ length: 2000 }, () => makeApiKey(randomBytes)))
    expect(keys.size).toBe(2000)
    for (const key of keys) expect(key).toMatch(/^peage_[0-9A-Za-z]{36}$/)
  })

  it('contains each character with the same probability, because bytes that would cause a bias are replaced', () => {
    const drawn: number[] = []
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const key = makeApiKey(size => {
      drawn.push(size)
      // The first call returns the bytes 238 to 255. The key must not use the bytes 248 (four times 62) to 255, because
      // they would cause a bias.
      return drawn.length === 1 ? everyByte.slice(238) : everyByte.slice(0, size)
    })
    expect(key.slice(6, 36)).toBe([...base62.slice(52), ...base62.slice(0, 20)].join(''))
    expect(drawn).toEqual([30, 20])
  })
})

describeOverSetups('the records of API keys', ({ openDatabase: open }) => {
  let database: Database
  let store: ApiKeyStores
  let id: number

  beforeAll(async () => {
    database = await open()
    store = openApiKeys(database)
    id = await addUser(database)
    await database.query('insert into api_tokens (user_id, token_hash) values ($1, $2)', [id, sha256('live')])
    await database.query('insert into api_tokens (user_id, token_hash, revoked) values ($1, $2, 1)', [
      id,
      sha256('revoked'),
    ])
  })
  afterAll(() => database.close())

  it('an active key is found with its user, even if the user is inactive', async () => {
    const live = {
      id: expect.stringMatching(/^api-token-\d+$/),
      userId: id,
      isApiToken: true,
      scopes: null,
      expiresAtMs: null,
    }
    expect(await store.findActive(hashApiKey('live'))).toEqual(live)
    const users = createUserStore(database)
    await users.update(id, { is_active: 0 })
    expect(await store.findActive(hashApiKey('live'))).toEqual(live)
    await users.update(id, { is_active: 1 })
  })

  it('a revoked key and an unknown key are not found', async () => {
    expect(await store.findActive(hashApiKey('revoked'))).toBeUndefined()
    expect(await store.findActive(hashApiKey('unknown'))).toBeUndefined()
  })

  it('a time of use replaces a later stored time only if the stored time is more than a minute later', async () => {
    const keyId = (await store.findActive(hashApiKey('live')))?.id ?? ''
    const lastUsed = async () =>
      (
        await database.query<{ at: Date }>('select last_used_at as at from api_tokens where id = $1', [
          apiTokenIdOf(keyId),
        ])
      )[0]?.at
    const [earlier, later] = [new Date('2026-01-02T03:04:05.678Z'), new Date('2026-01-02T03:04:05.679Z')]
    await store.recordUse(keyId, later)
    expect(await lastUsed()).toEqual(later)
    await store.recordUse(keyId, earlier)
    expect(await lastUsed()).toEqual(later)
    // The stored time is from a clock that was two hours ahead. After the clock is corrected, the earlier time must
    // replace the stored time.
    await store.recordUse(keyId, new Date('2026-01-02T05:04:05.678Z'))
    await store.recordUse(keyId, earlier)
    expect(await lastUsed()).toEqual(earlier)
  })
})
