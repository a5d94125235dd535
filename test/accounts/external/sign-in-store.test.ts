// Tests which account is found or created when a person signs in with an identity provider, on both databases.
import { beforeEach, expect, it } from 'vitest'
import {
  AccountExists,
  createSignInStore,
  type SignInRequest,
} from '../../../src/accounts/external/sign-in-store.ts'
import { createStores } from '../../../src/composition/stores.ts'
import type { Database } from '../../../src/storage/database.ts'
import type { UserChange } from '../../../src/users/user-change.ts'
import { describeOnBothSetups } from '../../support/setups.ts'

const issuer = 'https://accounts.example.com'
const now = new Date('2026-01-02T03:04:05Z')
const ada = { issuer, sub: 'ada-1', email: 'ada@example.com' }

describeOnBothSetups('a sign-in with an identity provider', setup => {
  let database: Database
  let changes: UserChange[]
  let store: ReturnType<typeof createSignInStore>

  beforeEach(async () => {
    database = await setup.openDatabase()
    changes = []
    store = createSignInStore({
      database,
      async forgetIntegrations(tx, { id }) {
        await tx.query('delete from identities where user_id = $1', [id])
      },
      async recordChanges(_, recorded) {
        changes.push(...recorded)
      },
    })
    return () => database.close()
  })

  const signIn = (
    person: SignInRequest<number>['person'],
    { proof, ...rules }: Partial<SignInRequest<number>['rules']> & Pick<SignInRequest<number>, 'proof'> = {},
  ) =>
    store.signIn(
      {
        person,
        rules: { link: true, register: true, firstPlan: 'free', ...rules },
        proof,
        spend: async () => {},
        open: async (_, user) => user.id,
      },
      now,
    )

  const refusal = (attempt: Promise<unknown>) =>
    attempt.then(
      () => 'signed in',
      error => (error instanceof AccountExists && error.isFinal ? 'final' : error.code),
    )

  async function account(
    email: string,
    columns: { verified?: boolean; active?: boolean; hash?: string } = {},
  ) {
    const { verified = false, active = true, hash = 'right' } = columns
    const [row] = await database.query<{ id: number }>(
      `insert into users (email, password_hash, is_active, email_verified_at)
       values ($1, $2, $3, case when $4::boolean then now() end) returning id`,
      [email, hash, active ? 1 : 0, verified],
    )
    return row?.id as number
  }

  const identities = () =>
    database.query('select issuer, sub, user_id, email from identities order by issuer, sub')
  const kinds = () => changes.map(({ type }) => type)

  it('creates an account without a password for an unknown person, and a second sign-in creates nothing', async () => {
    const first = await signIn(ada, { firstPlan: 'basic' })
    expect(first).toEqual({ session: first.session, isNew: true, hasChanged: false })
    expect(
      await database.query(
        'select email, password_hash, plan, email_verified_at is not null as verified from users',
      ),
    ).toEqual([{ email: ada.email, password_hash: '!', plan: 'basic', verified: true }])
    expect(await signIn(ada)).toEqual({ session: first.session, isNew: false, hasChanged: false })
    expect(await identities()).toEqual([{ ...ada, user_id: first.session }])
    expect(kinds()).toEqual(['user.created'])
  })

  it('finds the account of a known person, even if the settings or the email have changed', async () => {
    const { session } = await signIn(ada)
    const later = { issuer, sub: ada.sub, email: undefined }
    expect((await signIn(later, { link: false, register: false })).session).toBe(session)
    await account('other@example.com', { verified: true })
    expect((await signIn({ ...ada, email: 'other@example.com' })).session).toBe(session)
    expect(await database.query('select email, last_used_at from identities')).toEqual([
      { email: ada.email, last_used_at: now },
    ])
  })

  it('is refused for an inactive user, even with a known identity or with the same verified email', async () => {
    const { session } = await signIn(ada)
    await database.query('update users set is_active = 0 where id = $1', [session])
    expect(await refusal(signIn(ada))).toBe('credentials_invalid')
    expect(await refusal(signIn({ ...ada, issuer: 'https://other.example.com' }))).toBe('credentials_invalid')
    expect(await identities()).toHaveLength(1)
  })

  it('is refused for an unknown person without a verified email', async () => {
    expect(await refusal(signIn({ ...ada, email: undefined }))).toBe('provider_email_unverified')
  })

  it('is refused for an unknown person if registration is closed', async () => {
    expect(await refusal(signIn(ada, { register: false }))).toBe('registration_closed')
    expect(await database.query('select from users')).toEqual([])
  })

  it('links the person to the account with the same verified email, and changes nothing else in it', async () => {
    const id = await account(ada.email, { verified: true })
    expect(await signIn(ada)).toEqual({ session: id, isNew: false, hasChanged: true })
    expect(kinds()).toEqual(['user.identity_linked'])
    expect(await database.query('select password_hash, session_epoch from users')).toEqual([
      { password_hash: 'right', session_epoch: 0 },
    ])
  })

  it('without a proof, does not link the person to an account with the same unverified email', async () => {
    await account(ada.email)
    expect(await refusal(signIn(ada))).toBe('account_exists')
    expect(await identities()).toEqual([])
  })

  it('with the right password, links the person to an account with the same unverified email, and verifies the email', async () => {
    const id = await account(ada.email)
    await expect(signIn(ada, { proof: { checkedHash: 'replaced' } })).rejects.toThrow()
    expect(await identities()).toEqual([])
    expect((await signIn(ada, { proof: { checkedHash: 'right' } })).session).toBe(id)
    expect(kinds()).toEqual(['user.email_verified', 'user.identity_linked'])
    expect(await database.query('select password_hash, session_epoch from users')).toEqual([
      { password_hash: 'right', session_epoch: 0 },
    ])
  })

  it('with the proof `reset`, links the person and removes the password, sessions and other identities of the account', async () => {
    const id = await account(ada.email)
    await database.query(
      `insert into refresh_tokens (user_id, token_hash, expires_at, session_epoch)
       values ($1, 'hash', now() + interval '1 day', 0)`,
      [id],
    )
    await database.query(
      "insert into identities (issuer, sub, user_id) values ('https://evil.example.com', 'm', $1)",
      [id],
    )
    expect((await signIn(ada, { proof: 'reset' })).session).toBe(id)
    expect(kinds()).toEqual(['user.password_changed', 'user.email_verified', 'user.identity_linked'])
    expect(await database.query('select password_hash, session_epoch from users')).toEqual([
      { password_hash: '!', session_epoch: 1 },
    ])
    expect(await database.query('select revoked from refresh_tokens')).toEqual([{ revoked: 1 }])
    expect(await identities()).toEqual([{ ...ada, user_id: id }])
  })

  it('with `link: false`, links the person to an account with the same verified email only if the password is right', async () => {
    const id = await account(ada.email, { verified: true })
    expect(await refusal(signIn(ada, { link: false }))).toBe('account_exists')
    expect(await refusal(signIn(ada, { link: false, proof: 'reset' }))).toBe('account_exists')
    expect((await signIn(ada, { link: false, proof: { checkedHash: 'right' } })).session).toBe(id)
    expect(kinds()).toEqual(['user.identity_linked'])
  })

  it('is permanently refused, with every proof, if another person of the same issuer is linked to the account', async () => {
    await signIn(ada)
    const other = { ...ada, sub: 'ada-2' }
    await database.query("update users set password_hash = 'right'")
    for (const proof of [undefined, 'reset', { checkedHash: 'right' }] as const)
      expect(await refusal(signIn(other, { proof }))).toBe('final')
    await database.query('update users set email_verified_at = null')
    for (const proof of [undefined, 'reset', { checkedHash: 'right' }] as const)
      expect(await refusal(signIn(other, { proof }))).toBe('final')
    expect(await identities()).toHaveLength(1)
  })

  it('stores nothing if it fails', async () => {
    const request: SignInRequest<never> = {
      person: ada,
      rules: { link: true, register: true, firstPlan: 'free' },
      spend: async tx => void (await tx.query("insert into used_id_tokens values ('hash', now())")),
      open: async () => Promise.reject(new Error('no session')),
    }
    await expect(store.signIn(request, now)).rejects.toThrow('no session')
    expect(await database.query('select from users')).toEqual([])
    expect(await database.query('select from used_id_tokens')).toEqual([])
  })

  it('creates one account and one identity for 50 concurrent sign-ins in two processes', async () => {
    const other = createStores({
      database,
      mailQueue: undefined as never,
      recordChanges: async () => {},
      plans: undefined as never,
    }).signIns
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 === 0 ? store : other).signIn(
          {
            person: ada,
            rules: { link: true, register: true, firstPlan: 'free' },
            spend: async () => {},
            open: async (_, user) => user.id,
          },
          now,
        ),
      ),
    )
    expect(new Set(results.map(({ session }) => session)).size).toBe(1)
    expect(results.filter(({ isNew }) => isNew)).toHaveLength(1)
    expect(await database.query('select from users')).toHaveLength(1)
    expect(await identities()).toHaveLength(1)
  })

  it('creates one account for two persons with the same email at two issuers, and links both persons to it', async () => {
    const persons = [ada, { ...ada, issuer: 'https://other.example.com' }]
    const results = await Promise.all(persons.map(person => signIn(person)))
    expect(new Set(results.map(({ session }) => session)).size).toBe(1)
    expect(await identities()).toHaveLength(2)
  })
})
