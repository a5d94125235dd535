// Lists, generates, rotates and retires the stored signing keys.
import { isSealed, type Sealer } from '../sealer.ts'
import { assertionSignerAt, type KeyTimes, type Lifetimes, retirableFrom, signerAt } from './key-schedule.ts'
import type { KeyStore, StoredKey } from './key-store.ts'
import { generatePrivateJwk, KeyError, type SigningAlgorithm } from './signing-key.ts'
import { decryptStoredKeys } from './stored-keys.ts'

export interface KeyInfo {
  readonly kid: string
  readonly alg: SigningAlgorithm
  readonly state: 'signs' | 'will_sign' | 'verifies'
  readonly createdAt: Date
  /** The time when the key starts or started to sign. `null` for a key that only verifies. */
  readonly signsFrom: Date | null
  readonly signsAssertions: boolean
  /**
   * The time from which all signatures of the key have expired, so that the key can be retired. `null` if no other key
   * is scheduled to sign after this key.
   */
  readonly retirableFrom: Date | null
}

export interface KeyAdministration {
  /** Returns the keys, sorted by `signsFrom`, latest first. */
  list(): Promise<KeyInfo[]>
  /** Creates a key that is published and used to verify, but not to sign. Returns its `kid`. */
  generate(alg: SigningAlgorithm): Promise<string>
  /** Creates a key, or uses the stored key `kid`. Schedules this key to sign after every replica has loaded it. */
  rotate(to: { alg: SigningAlgorithm } | { kid: string }): Promise<KeyRotation | 'unknown' | 'signs'>
  /**
   * Deletes a key, so its signatures become invalid. Without `force`, deletes the key only if all its signatures have
   * expired.
   */
  retire(kid: string, options: { force: boolean }): Promise<Retirement>
}

interface KeyRotation {
  readonly kid: string
  readonly waitMs: number
}

export type Retirement =
  | { readonly outcome: 'retired' | 'unknown' | 'signs' | 'will_sign' | 'changed' }
  | { readonly outcome: 'unspent'; readonly until: Date }

interface Dependencies {
  store: KeyStore
  /** Undefined if `auth.key_secret` is not set. */
  sealer: Sealer | undefined
  /** The time after which every running replica has loaded a newly stored key. */
  signingDelayMs: number
  lifetimes: Lifetimes
}

/** Every method throws StorageError. All except `retire` throw KeyError if the stored keys cannot be decrypted. */
export function createKeyAdministration({
  store,
  sealer,
  signingDelayMs,
  lifetimes,
}: Dependencies): KeyAdministration {
  async function list(): Promise<KeyInfo[]> {
    const decrypted = await decryptStoredKeys(await store.all(), sealer)
    const states = statesOf(decrypted.map(({ row }) => row))
    return decrypted.map(({ row, key: { kid, alg } }) => ({
      kid,
      alg,
      ...states.of(row),
      createdAt: row.created_at,
      signsFrom: row.signs_from,
    }))
  }

  function statesOf(rows: readonly StoredKey[]) {
    const keys = rows.map(toKeyTimes)
    const now = rows[0]?.read_at.getTime() ?? 0
    const signer = signerAt(keys, now)?.kid
    const assertionSigner = assertionSignerAt(keys, now)?.kid
    return {
      of(row: StoredKey): Pick<KeyInfo, 'state' | 'signsAssertions' | 'retirableFrom'> {
        const retirableFromMs = retirableFrom(toKeyTimes(row), keys, lifetimes)
        const isUpcoming = row.signs_from !== null && row.signs_from.getTime() > now
        return {
          state: row.kid === signer ? 'signs' : isUpcoming ? 'will_sign' : 'verifies',
          signsAssertions: lifetimes.usesAssertions && row.kid === assertionSigner,
          retirableFrom: retirableFromMs === undefined ? null : new Date(retirableFromMs),
        }
      },
    }
  }

  /**
   * Creates the JWK to store. First checks that this process can decrypt the stored keys, so that it uses the same
   * secret as the gateways. A gateway that cannot decrypt the new key would fail to load all keys.
   */
  async function createStoredJwk(alg: SigningAlgorithm): Promise<{ kid: string; text: string }> {
    const rows = await store.all()
    await decryptStoredKeys(rows, sealer)
    if (sealer !== undefined && rows.some(row => !isSealed(row.private_jwk))) {
      throw new KeyError(
        'auth.key_secret is set, but the stored signing keys are not encrypted yet: start a gateway with this secret first',
      )
    }
    const { kid, text } = await generatePrivateJwk(alg)
    return { kid, text: sealer?.seal(text, kid) ?? text }
  }

  async function msUntilSigning(kid: string): Promise<number> {
    const row = (await store.all()).find(each => each.kid === kid)
    return Math.max(0, (row?.signs_from?.getTime() ?? 0) - (row?.read_at.getTime() ?? 0))
  }

  return {
    list,

    async generate(alg) {
      const { kid, text } = await createStoredJwk(alg)
      await store.add(kid, text)
      return kid
    },

    async rotate(to) {
      if ('alg' in to) {
        const { kid, text } = await createStoredJwk(to.alg)
        await store.addSigning(kid, text, signingDelayMs)
        return { kid, waitMs: await msUntilSigning(kid) }
      }
      const { kid } = to
      const key = (await list()).find(each => each.kid === kid)
      if (key === undefined) return 'unknown'
      if (key.state === 'signs') return 'signs'
      if (key.state === 'verifies' && !(await store.letSign(kid, signingDelayMs))) return 'unknown'
      return { kid, waitMs: await msUntilSigning(kid) }
    },

    async retire(kid, { force }) {
      const rows = await store.all()
      const row = rows.find(each => each.kid === kid)
      if (row === undefined) return { outcome: 'unknown' }
      const { state, retirableFrom: until } = statesOf(rows).of(row)
      if (state !== 'verifies') return { outcome: state }
      if (!force && until !== null && until > row.read_at) return { outcome: 'unspent', until }
      return { outcome: (await store.remove(kid, row.signs_from)) ? 'retired' : 'changed' }
    },
  }
}

function toKeyTimes({ kid, created_at, signs_from }: StoredKey): KeyTimes & { kid: string } {
  return { kid, createdAt: created_at.getTime(), signsFrom: signs_from?.getTime() ?? null }
}
