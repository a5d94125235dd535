import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { calculateJwkThumbprint } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { propagationDelayMs } from '../../../src/identity/keys/key-schedule.ts'
import { createKeyStore } from '../../../src/identity/keys/key-store.ts'
import { generatePrivateJwk, readPrivateJwk } from '../../../src/identity/keys/signing-key.ts'
import { openSigningKeys, readSigningKeys } from '../../../src/identity/keys/signing-keys.ts'
import { createSealer } from '../../../src/identity/sealer.ts'
import { type Database, StorageError } from '../../../src/storage/database.ts'
import { movableClock } from '../../accounts/setup.ts'
import { postgresDatabase } from '../../support/databases.ts'
import { describeWithServices } from '../../support/services.ts'
import { describeOverSetups } from '../../support/setups.ts'

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const ed = generateKeyPairSync('ed25519')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const [ecJwk, edJwk, rsaJwk] = [ec, ed, rsa].map(({ privateKey }) => privateKey.export({ format: 'jwk' }))
const otherEdJwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
const otherEcJwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

describe('a private JWK', () => {
  it.each([
    ['EC P-256', ecJwk, 'ES256'],
    ['OKP Ed25519', edJwk, 'EdDSA'],
    ['RSA of 2,048 bits', rsaJwk, 'RS256'],
  ])('with type %s signs with the matching algorithm and has its thumbprint as kid', async (_, jwk, alg) => {
    const key = await readPrivateJwk(JSON.stringify(jwk))
    expect(key.alg).toBe(alg)
    expect(key.kid).toBe(await calculateJwkThumbprint(jwk as object))
  })

  it('keeps its kid and is published without any private member', async () => {
    for (const jwk of [ecJwk, edJwk, rsaJwk]) {
      const { kid, publicJwk } = await readPrivateJwk(
        JSON.stringify({
          ...jwk,
          kid: 'mine',
          use: 'sig',
          key_ops: ['sign', 'verify'],
          ext: true,
          secret: 'x',
        }),
      )
      expect(kid).toBe('mine')
      expect(publicJwk).toMatchObject({ kid: 'mine', use: 'sig' })
      for (const member of [...privateMembers, 'secret', 'key_ops', 'ext'])
        expect(publicJwk).not.toHaveProperty(member)
    }
  })

  const bytesOf = (member: string) => Buffer.from(member, 'base64url')
  const encodings: [string, (member: string) => string][] = [
    ['padded', member => member.padEnd(Math.ceil(member.length / 4) * 4, '=')],
    ['in the alphabet of base64', member => bytesOf(member).toString('base64')],
    ['split by a line end', member => `${member.slice(0, 20)}\n${member.slice(20)}\n`],
  ]
  it.each(encodings)(
    'is published in base64url without padding, even if its stored members are %s',
    async (_, encode) => {
      for (const jwk of [ecJwk, edJwk, rsaJwk]) {
        const members = Object.entries(jwk ?? {}).map(([name, value]) => [
          name,
          ['kty', 'crv'].includes(name) ? value : encode(String(value)),
        ])
        const written = await readPrivateJwk(JSON.stringify(Object.fromEntries(members)))
        expect(written.publicJwk).toEqual((await readPrivateJwk(JSON.stringify(jwk))).publicJwk)
        expect(written.kid).toBe(await calculateJwkThumbprint(jwk as object))
      }
    },
  )

  it('is published with members of the right length, even if leading zero bytes are missing or superfluous', async () => {
    let jwk = ecJwk
    while (bytesOf(jwk?.x ?? '')[0] !== 0)
      jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
    const short = {
      ...jwk,
      x: bytesOf(jwk?.x ?? '')
        .subarray(1)
        .toString('base64url'),
    }
    const long = {
      ...rsaJwk,
      n: Buffer.concat([Buffer.alloc(1), bytesOf(rsaJwk?.n ?? '')]).toString('base64url'),
    }
    const [ofShort, ofLong] = [
      await readPrivateJwk(JSON.stringify(short)),
      await readPrivateJwk(JSON.stringify(long)),
    ]
    expect(ofShort.publicJwk).toMatchObject({ x: jwk?.x, y: jwk?.y })
    expect(ofLong.publicJwk).toMatchObject({ n: rsaJwk?.n, e: rsaJwk?.e })
    expect(ofShort.kid).toBe(await calculateJwkThumbprint(jwk as object))
    expect(ofLong.kid).toBe(await calculateJwkThumbprint(rsaJwk as object))
  })

  it('is accepted with an RSA public exponent larger than 65537', async () => {
    const larger = generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 65_539 })
    const jwk = larger.privateKey.export({ format: 'jwk' })
    expect(await readPrivateJwk(JSON.stringify(jwk))).toMatchObject({ alg: 'RS256' })
  })

  // The test does not compare the error message, because it depends on the version of Node. The messages for other
  // invalid keys are in `test/config/golden/auth.txt`.
  it.each([
    ['EC', ecJwk, otherEcJwk],
    ['Ed25519', edJwk, otherEdJwk],
  ])(
    'with type %s is refused if its private part does not match its public part; the error does not quote the key',
    async (_, jwk, other) => {
      const error = await readPrivateJwk(JSON.stringify({ ...jwk, d: other.d })).catch(reason => reason)
      expect(error).toMatchObject({ name: 'KeyError' })
      expect(String(error)).not.toContain(jwk?.x)
      expect(String(error)).not.toContain(other.d)
    },
  )
})

describe('keys from files', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'peage-keys-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function file(name: string, content: unknown): Promise<string> {
    const path = join(folder, name)
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
    return path
  }

  it('are published in the order of the files; all of them verify tokens, but only the first key signs tokens', async () => {
    const keys = await readSigningKeys([
      await file('a.json', { ...rsaJwk, kid: 'a' }),
      await file('b.json', { ...ecJwk, kid: 'b' }),
    ])
    expect(keys.current().kid).toBe('a')
    expect((await keys.find('b'))?.alg).toBe('ES256')
    expect(await keys.find('c')).toBeUndefined()
    expect(keys.jwks().keys.map(({ kid }) => kid)).toEqual(['a', 'b'])
  })

  it('cause an error with the name of the file if the file is missing or invalid, or repeats a kid', async () => {
    const missing = join(folder, 'missing.json')
    await expect(readSigningKeys([missing])).rejects.toThrow(`auth.keys: ${missing} cannot be read (ENOENT)`)
    const open = await file('public.json', ec.publicKey.export({ format: 'jwk' }))
    await expect(readSigningKeys([open])).rejects.toThrow(`auth.keys: ${open} `)
    const twice = await file('twice.json', ecJwk)
    await expect(readSigningKeys([twice, twice])).rejects.toThrow(/has the same kid as a previous file/)
  })
})

describeOverSetups('keys in the database', ({ openDatabase: open }) => {
  let database: Database
  const clock = movableClock()
  const onError = vi.fn()

  beforeAll(async () => {
    database = await open()
  })
  afterAll(() => database.close())
  beforeEach(async () => {
    onError.mockClear()
    await database.query('delete from signing_keys')
  })

  const openKeys = async (secret?: string) =>
    openSigningKeys({
      store: createKeyStore(database),
      sealer: secret === undefined ? undefined : await createSealer(secret),
      clock,
      onError,
    })
  const stored = () =>
    database.query<{ kid: string; private_jwk: string; signs_from: Date | null }>(
      'select * from signing_keys',
    )

  /** Adds a key that will sign in `delay` milliseconds. @returns its kid */
  async function rotate(delay = 0): Promise<string> {
    const { kid, text } = await generatePrivateJwk('EdDSA')
    await createKeyStore(database).addSigning(kid, text, delay)
    return kid
  }

  it('consist of one ES256 key after the first start, and this key stays after a restart', async () => {
    const first = await openKeys()
    expect(first.current().alg).toBe('ES256')
    expect((await openKeys()).current().kid).toBe(first.current().kid)
    expect(await stored()).toHaveLength(1)
  })

  it('consist of one key after eight replicas have started at the same time', async () => {
    const replicas = await Promise.all(Array.from({ length: 8 }, () => openKeys()))
    expect(new Set(replicas.map(keys => keys.current().kid)).size).toBe(1)
    expect(await stored()).toHaveLength(1)
  })

  it('keep the kid that an earlier version stored, even if this kid was computed from padded members', async () => {
    const padded = { ...ecJwk, x: `${ecJwk?.x}=`, y: `${ecJwk?.y}=` }
    const earlierKid = await calculateJwkThumbprint(padded as object)
    await createKeyStore(database).addFirst(earlierKid, JSON.stringify(padded))
    for (const keys of [await openKeys(), await openKeys('a secret'), await openKeys('a secret')]) {
      expect(keys.current().kid).toBe(earlierKid)
      expect(keys.jwks().keys).toEqual([
        { kty: 'EC', crv: 'P-256', x: ecJwk?.x, y: ecJwk?.y, kid: earlierKid, alg: 'ES256', use: 'sig' },
      ])
    }
  })

  it('are encrypted if a secret is set, and can be decrypted only with this secret', async () => {
    const keys = await openKeys('a secret')
    const [row] = await stored()
    expect(row?.private_jwk).toMatch(/^sealed\./)
    expect((await openKeys('a secret')).current().kid).toBe(keys.current().kid)
    await expect(openKeys()).rejects.toThrow(
      /auth\.key_secret is not set, but the stored signing key .+ is encrypted/,
    )
    await expect(openKeys('another')).rejects.toThrow(
      /auth\.key_secret cannot decrypt the stored signing key/,
    )
    expect(await stored()).toEqual([row])
  })

  it('are encrypted at the first start with a secret if they were unencrypted, and keep their kid', async () => {
    const before = await openKeys()
    await rotate()
    const after = await openKeys('a secret')
    for (const { private_jwk } of await stored()) expect(private_jwk).toMatch(/^sealed\./)
    expect(await after.find(before.current().kid)).toBeDefined()
  })

  it('are read again if a token has an unknown kid, so that the gateway finds a new key and signs with it', async () => {
    const keys = await openKeys()
    const old = keys.current().kid
    const kid = await rotate()
    expect(keys.getLoaded(kid)).toBeUndefined()
    expect((await keys.find(kid))?.kid).toBe(kid)
    expect(keys.current().kid).toBe(kid)
    expect(keys.jwks().keys.map(key => key.kid)).toEqual([kid, old])
  })

  it('can verify immediately, but sign only from their start time, even if the clock of the replica is wrong', async () => {
    const keys = await openKeys()
    const old = keys.current().kid
    const kid = await rotate(propagationDelayMs)
    clock.advance(-60 * 60_000)
    await keys.reload()
    expect(keys.getLoaded(kid)).toBeDefined()
    expect(keys.jwks().keys.map(key => key.kid)).toEqual([old, kid])
    clock.advance(propagationDelayMs - 1_000)
    expect(keys.current().kid).toBe(old)
    clock.advance(1_000)
    expect(keys.current().kid).toBe(kid)
    expect(keys.jwks().keys.map(key => key.kid)).toEqual([kid, old])
    expect(keys.getLoaded(old)).toBeDefined()
  })

  it('are read again for the first token of a new key, even if the last read happened during the rotation', async () => {
    const store = createKeyStore(database)
    let meanwhile = async () => {}
    const all = async () => {
      const rows = await store.all()
      await meanwhile()
      return rows
    }
    const keys = await openSigningKeys({ store: { ...store, all }, sealer: undefined, clock, onError })
    let kid = ''
    meanwhile = async () => {
      kid = await rotate(propagationDelayMs)
      // Simulates the slowest possible read of the keys, which takes 1.5 s.
      clock.advance(1_500)
    }
    expect(await keys.find('made up')).toBeUndefined()
    meanwhile = async () => {}
    clock.advance(propagationDelayMs - 1_500)
    expect((await keys.find(kid))?.kid).toBe(kid)
  })

  it('do not sign if they were added only for verification, even if there is no other key', async () => {
    const { kid, text } = await generatePrivateJwk('ES256')
    await createKeyStore(database).add(kid, text)
    const keys = await openKeys()
    expect(keys.current().kid).not.toBe(kid)
    expect(keys.getLoaded(kid)).toBeDefined()
    clock.advance(365 * 24 * 60 * 60_000)
    expect(keys.current().kid).not.toBe(kid)
  })

  it('sign assertions with the previous key until every cached copy of the JWKS contains the new key', async () => {
    const keys = await openKeys()
    const old = keys.current().kid
    await database.query("update signing_keys set created_at = now() - interval '1 hour'")
    const kid = await rotate()
    await keys.reload()
    expect(keys.current().kid).toBe(kid)
    // A replica may load the new key up to 5 s after it was stored. Until then, the JWKS of the replica does not
    // contain the new key. A client may use a copy of this older JWKS for 300 s.
    clock.advance((5 + 300) * 1000)
    expect(keys.forAssertions().kid).toBe(old)
    clock.advance(5_000)
    expect(keys.forAssertions().kid).toBe(kid)
  })

  it('are read at most once a second for unknown kids, and only once for concurrent calls', async () => {
    const store = createKeyStore(database)
    const all = vi.fn(store.all)
    const keys = await openSigningKeys({ store: { ...store, all }, sealer: undefined, clock, onError })
    all.mockClear()
    await Promise.all(Array.from({ length: 20 }, (_, i) => keys.find(`made up ${i}`)))
    expect(all).toHaveBeenCalledTimes(1)
    const kid = await rotate()
    clock.advance(999)
    expect(await keys.find(kid)).toBeUndefined()
    expect(all).toHaveBeenCalledTimes(1)
    clock.advance(1)
    expect((await keys.find(kid))?.kid).toBe(kid)
    expect(all).toHaveBeenCalledTimes(2)
  })

  it('are not used if they were deleted before the last read; if no key is left, a new key is created', async () => {
    const keys = await openKeys()
    const gone = keys.current().kid
    await database.query('delete from signing_keys')
    await keys.find('another')
    expect(keys.getLoaded(gone)).toBeUndefined()
    expect(keys.current().kid).not.toBe(gone)
    expect(await stored()).toMatchObject([{ kid: keys.current().kid, signs_from: expect.any(Date) }])
  })

  it('cause an error for an unknown kid at a failed read and in the second after it, so that no token counts as invalid', async () => {
    const store = createKeyStore(database)
    const all = vi.fn(store.all)
    const keys = await openSigningKeys({ store: { ...store, all }, sealer: undefined, clock, onError })
    all.mockClear()
    all.mockRejectedValue(new StorageError('away', undefined, undefined))
    await expect(keys.find('unknown')).rejects.toBeInstanceOf(StorageError)
    await expect(keys.find('unknown')).rejects.toBeInstanceOf(StorageError)
    expect(all).toHaveBeenCalledTimes(1)
    expect(await keys.find(keys.current().kid)).toBe(keys.current())
    clock.advance(1000)
    all.mockImplementation(store.all)
    expect(await keys.find('unknown')).toBeUndefined()
  })

  it('stay in use if the stored keys can no longer be decrypted', async () => {
    const keys = await openKeys()
    const { kid } = keys.current()
    await database.query("update signing_keys set private_jwk = 'sealed.v1.AAAA'")
    expect(await keys.find('unknown')).toBeUndefined()
    expect(keys.current().kid).toBe(kid)
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ name: 'KeyError' }))
    await expect(keys.reload()).rejects.toThrow(/auth\.key_secret is not set/)
  })
})

describeWithServices('two replicas that create the first key', () => {
  it('store only one key, even if the transaction that began later commits first', async () => {
    const database = await postgresDatabase()
    const store = createKeyStore(database)
    // The transaction of the store `early` begins first and commits last. In Postgres, `now()` returns the time at
    // which the transaction began. So the time of `early` is earlier, although it commits later.
    const early = createKeyStore({
      ...database,
      transaction: work =>
        database.transaction(async tx => {
          await tx.query('select now()')
          await store.addFirst('later', '{}')
          return work(tx)
        }),
    })
    await early.addFirst('earlier', '{}')
    expect((await store.all()).map(({ kid }) => kid)).toEqual(['later'])
    await database.close()
  })
})
