// What operators do with the stored keys: look at them, make them, give them their turn, and retire them.

import { isSealed, type Sealer } from '../sealer.ts'
import { assertionSignerAt, type Lifetimes, type Scheduled, signerAt, spentFrom } from './key-schedule.ts'
import type { KeyStore, StoredKey } from './key-store.ts'
import { generatePrivateJwk, KeyError, type SigningAlgorithm } from './signing-key.ts'
import { openStoredKeys } from './stored-keys.ts'

export interface KeyFacts {
  readonly kid: string
  readonly alg: SigningAlgorithm
  readonly state: 'signs' | 'will_sign' | 'verifies'
  readonly createdAt: Date
  /** Its turn, also one that is over; `null` where it never had one. */
  readonly signsFrom: Date | null
  readonly signsAssertions: boolean
  /** From when on nothing is good any more that it signed; `null` where no key follows it. */
  readonly spentFrom: Date | null
}

export interface KeyAdministration {
  /** The latest to sign first. */
  list(): Promise<KeyFacts[]>
  /** Makes a key that is published and verifies; returns its name. */
  generate(alg: SigningAlgorithm): Promise<string>
  /** Makes a key, or takes one that is stored, and lets it sign when every replica knows it. */
  rotate(to: { alg: SigningAlgorithm } | { kid: string }): Promise<Rotation | 'unknown' | 'signs'>
  /** Deletes a key, so that what it signed is good no more; by force while some of it still would be. */
  retire(kid: string, options: { force: boolean }): Promise<Retirement>
}

export interface Rotation {
  readonly kid: string
  /** Milliseconds until it signs. */
  readonly wait: number
}

export type Retirement =
  | { readonly outcome: 'retired' | 'unknown' | 'signs' | 'will_sign' | 'changed' }
  | { readonly outcome: 'unspent'; readonly until: Date }

interface Parts {
  store: KeyStore
  /** Where `auth.key_secret` is set. */
  sealer: Sealer | undefined
  /** Milliseconds until replicas that may be running know a key that is stored now. */
  delay: number
  lifetimes: Lifetimes
}

/** Every method throws StorageError, and all but `retire` KeyError where the stored keys cannot be opened. */
export function createKeyAdministration({ store, sealer, delay, lifetimes }: Parts): KeyAdministration {
  async function list(): Promise<KeyFacts[]> {
    const opened = await openStoredKeys(await store.all(), sealer)
    const turns = turnsOf(opened.map(({ row }) => row))
    return opened.map(({ row, key: { kid, alg } }) => ({
      kid,
      alg,
      ...turns.of(row),
      createdAt: row.created_at,
      signsFrom: row.signs_from,
    }))
  }

  function turnsOf(rows: readonly StoredKey[]) {
    const keys = rows.map(scheduled)
    const now = rows[0]?.read_at.getTime() ?? 0
    const signer = signerAt(keys, now)?.kid
    const assertionSigner = assertionSignerAt(keys, now)?.kid
    return {
      of(row: StoredKey): Pick<KeyFacts, 'state' | 'signsAssertions' | 'spentFrom'> {
        const spent = spentFrom(scheduled(row), keys, lifetimes)
        const isAhead = row.signs_from !== null && row.signs_from.getTime() > now
        return {
          state: row.kid === signer ? 'signs' : isAhead ? 'will_sign' : 'verifies',
          signsAssertions: lifetimes.areAssertionsUsed && row.kid === assertionSigner,
          spentFrom: spent === undefined ? null : new Date(spent),
        }
      },
    }
  }

  /** The JWK as it is stored. What the gateways could not open would keep them from reading any key. */
  async function make(alg: SigningAlgorithm): Promise<{ kid: string; text: string }> {
    const rows = await store.all()
    await openStoredKeys(rows, sealer)
    if (sealer !== undefined && rows.some(row => !isSealed(row.private_jwk))) {
      throw new KeyError(
        'auth.key_secret is set, and the stored signing keys are not encrypted yet: start a gateway with it first',
      )
    }
    const { kid, text } = await generatePrivateJwk(alg)
    return { kid, text: sealer?.seal(text, kid) ?? text }
  }

  async function wait(kid: string): Promise<number> {
    const row = (await store.all()).find(each => each.kid === kid)
    return Math.max(0, (row?.signs_from?.getTime() ?? 0) - (row?.read_at.getTime() ?? 0))
  }

  return {
    list,

    async generate(alg) {
      const { kid, text } = await make(alg)
      await store.add(kid, text)
      return kid
    },

    async rotate(to) {
      if ('alg' in to) {
        const { kid, text } = await make(to.alg)
        await store.addSigning(kid, text, delay)
        return { kid, wait: await wait(kid) }
      }
      const { kid } = to
      const key = (await list()).find(each => each.kid === kid)
      if (key === undefined) return 'unknown'
      if (key.state === 'signs') return 'signs'
      if (key.state === 'verifies' && !(await store.letSign(kid, delay))) return 'unknown'
      return { kid, wait: await wait(kid) }
    },

    async retire(kid, { force }) {
      const rows = await store.all()
      const row = rows.find(each => each.kid === kid)
      if (row === undefined) return { outcome: 'unknown' }
      const { state, spentFrom: until } = turnsOf(rows).of(row)
      if (state !== 'verifies') return { outcome: state }
      if (!force && until !== null && until > row.read_at) return { outcome: 'unspent', until }
      return { outcome: (await store.remove(kid, row.signs_from)) ? 'retired' : 'changed' }
    },
  }
}

function scheduled({ kid, created_at, signs_from }: StoredKey): Scheduled & { kid: string } {
  return { kid, createdAt: created_at.getTime(), signsFrom: signs_from?.getTime() ?? null }
}
