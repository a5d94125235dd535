// Tests how operators administer signing keys: which key signs, and when a key may be deleted.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createKeyAdministration } from '../../../src/identity/keys/key-administration.ts'
import { type Lifetimes, propagationDelayMs } from '../../../src/identity/keys/key-schedule.ts'
import { createKeyStore } from '../../../src/identity/keys/key-store.ts'
import { createSealer } from '../../../src/identity/sealer.ts'
import type { Database } from '../../../src/storage/database.ts'
import { describeOverSetups } from '../../support/setups.ts'

const day = 24 * 60 * 60_000

describeOverSetups('the administration of signing keys', ({ openDatabase: open }) => {
  let database: Database
  beforeAll(async () => {
    database = await open()
  })
  afterAll(() => database?.close())
  beforeEach(() => database.query('delete from signing_keys'))

  async function keysOf({
    secret = '',
    delay: signingDelayMs = 0,
    lifetimes = {},
  }: {
    secret?: string
    delay?: number
    lifetimes?: Partial<Lifetimes>
  } = {}) {
    return createKeyAdministration({
      store: createKeyStore(database),
      sealer: secret === '' ? undefined : await createSealer(secret),
      signingDelayMs,
      lifetimes: { maxTokenTtlMs: 30 * day, usesAssertions: false, ...lifetimes },
    })
  }

  type Keys = Awaited<ReturnType<typeof keysOf>>
  const find = async (keys: Keys, kid: string) =>
    (await keys.list()).find(key => key.kid === kid) ?? expect.unreachable()
  async function rotate(keys: Keys, alg: 'ES256' | 'EdDSA' | 'RS256' = 'ES256'): Promise<string> {
    const rotation = await keys.rotate({ alg })
    return typeof rotation === 'string' ? expect.unreachable() : rotation.kid
  }
  /** Moves all stored times back by an interval, as if this interval had passed. */
  const passed = (interval: string) =>
    database.query(
      `update signing_keys set signs_from = signs_from - interval '${interval}', created_at = created_at - interval '${interval}'`,
    )
  const noForce = { force: false }

  it('a generated key has the requested algorithm, and verifies tokens but does not sign them', async () => {
    const keys = await keysOf()
    for (const alg of ['ES256', 'EdDSA', 'RS256'] as const) {
      const kid = await keys.generate(alg)
      expect(await find(keys, kid)).toMatchObject({ alg, state: 'verifies', signsFrom: null })
    }
  })

  it('the first key signs immediately, and each later key signs only when all replicas have it', async () => {
    const keys = await keysOf({ delay: propagationDelayMs })
    expect(await keys.rotate({ alg: 'ES256' })).toMatchObject({ waitMs: 0 })
    const [first] = await keys.list()
    const rotation = await keys.rotate({ alg: 'EdDSA' })
    expect(rotation).toMatchObject({ waitMs: expect.closeTo(propagationDelayMs, -3) })
    expect((await keys.list()).map(({ state, alg }) => ({ state, alg }))).toEqual([
      { state: 'will_sign', alg: 'EdDSA' },
      { state: 'signs', alg: 'ES256' },
    ])
    await passed('5 seconds')
    expect(await find(keys, first?.kid ?? '')).toMatchObject({ state: 'verifies' })
  })

  it('a rotation to a generated or previous key succeeds, but a rotation to the signing key or an unknown key fails', async () => {
    const keys = await keysOf()
    const first = await rotate(keys)
    const second = await keys.generate('ES256')
    expect(await keys.rotate({ kid: second })).toEqual({ kid: second, waitMs: 0 })
    expect(await find(keys, second)).toMatchObject({ state: 'signs' })
    expect(await keys.rotate({ kid: first })).toMatchObject({ kid: first })
    expect(await find(keys, first)).toMatchObject({ state: 'signs', retirableFrom: null })
    expect(await keys.rotate({ kid: first })).toBe('signs')
    expect(await keys.rotate({ kid: 'nobody' })).toBe('unknown')
  })

  it('a second rotation to the same key does not delay the first rotation', async () => {
    const keys = await keysOf({ delay: propagationDelayMs })
    await rotate(keys)
    const kid = await rotate(keys)
    const { signsFrom } = await find(keys, kid)
    expect(await keys.rotate({ kid })).toMatchObject({ kid })
    expect((await find(keys, kid)).signsFrom).toEqual(signsFrom)
  })

  it('a key that signs or will sign cannot be retired, even with force', async () => {
    const keys = await keysOf({ delay: propagationDelayMs })
    const signing = await rotate(keys)
    const next = await rotate(keys)
    for (const force of [false, true]) {
      expect(await keys.retire(signing, { force })).toEqual({ outcome: 'signs' })
      expect(await keys.retire(next, { force })).toEqual({ outcome: 'will_sign' })
    }
    expect(await keys.list()).toHaveLength(2)
  })

  it('a key whose tokens may still be valid can be retired only with force', async () => {
    const keys = await keysOf()
    const first = await rotate(keys)
    const second = await rotate(keys)
    const { signsFrom } = await find(keys, second)
    const until = new Date(Number(signsFrom) + 30 * day + 5_000)
    expect(await find(keys, first)).toMatchObject({ state: 'verifies', retirableFrom: until })
    expect(await keys.retire(first, noForce)).toEqual({ outcome: 'unspent', until })
    await passed('29 days 23 hours')
    expect(await keys.retire(first, noForce)).toMatchObject({ outcome: 'unspent' })
    await passed('1 hour 5 seconds')
    expect(await keys.retire(first, noForce)).toEqual({ outcome: 'retired' })
    expect(await keys.retire(first, noForce)).toEqual({ outcome: 'unknown' })
    const third = await rotate(keys)
    expect(await keys.retire(second, { force: true })).toEqual({ outcome: 'retired' })
    expect((await keys.list()).map(({ kid }) => kid)).toEqual([third])
  })

  it('a key is not retired if it starts to sign during the retirement', async () => {
    const keys = await keysOf()
    const kid = await keys.generate('ES256')
    await rotate(keys)
    const store = createKeyStore(database)
    const racing = createKeyAdministration({
      store: {
        ...store,
        async all() {
          const rows = await store.all()
          await store.letSign(kid, 0)
          return rows
        },
      },
      sealer: undefined,
      signingDelayMs: 0,
      lifetimes: { maxTokenTtlMs: 0, usesAssertions: false },
    })
    expect(await racing.retire(kid, { force: true })).toEqual({ outcome: 'changed' })
    expect(await find(keys, kid)).toMatchObject({ state: 'signs' })
  })

  it('after a rotation, the previous key still signs assertions, and cannot be retired until these have expired', async () => {
    const keys = await keysOf({ lifetimes: { maxTokenTtlMs: 60_000, usesAssertions: true } })
    const first = await rotate(keys)
    await passed('1 hour')
    const second = await rotate(keys)
    const { createdAt } = await find(keys, second)
    expect(await find(keys, first)).toMatchObject({
      state: 'verifies',
      signsAssertions: true,
      retirableFrom: new Date(createdAt.getTime() + 310_000 + 65_000),
    })
    await passed('2 minutes')
    expect(await keys.retire(first, noForce)).toMatchObject({ outcome: 'unspent' })
    await passed('311 seconds')
    expect(await find(keys, second)).toMatchObject({ state: 'signs', signsAssertions: true })
  })

  describe('with a secret that does not match the stored keys', () => {
    it('keys cannot be created or listed, because the stored keys cannot be decrypted', async () => {
      const kid = await rotate(await keysOf({ secret: 'the first' }))
      for (const secret of ['', 'another']) {
        const keys = await keysOf({ secret })
        for (const work of [
          () => keys.generate('ES256'),
          () => keys.rotate({ alg: 'ES256' }),
          () => keys.rotate({ kid }),
          () => keys.list(),
        ]) {
          await expect(work()).rejects.toThrow(/auth\.key_secret (is not set|cannot decrypt)/)
        }
      }
      expect(await (await keysOf({ secret: 'the first' })).list()).toHaveLength(1)
    })

    it('if the stored keys are unencrypted, no key can be created', async () => {
      await rotate(await keysOf())
      await expect((await keysOf({ secret: 'a new one' })).rotate({ alg: 'ES256' })).rejects.toThrow(
        /start a gateway with this secret first/,
      )
    })

    it('a key can still be retired', async () => {
      const sealed = await keysOf({ secret: 'the first' })
      const first = await rotate(sealed)
      await rotate(sealed)
      expect(await (await keysOf()).retire(first, { force: true })).toEqual({ outcome: 'retired' })
    })
  })
})
