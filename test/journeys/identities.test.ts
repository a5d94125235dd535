// Users list and remove the identities that they have at other providers. No account loses its last way to sign in.
import { expect, it } from 'vitest'
import type { Queryable } from '../../src/storage/database.ts'
import { call, login, newUser, type TestUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { giveIdentities, issuers, issuersOf, providers, takePassword } from '../support/identities.ts'
import { journey } from '../support/journey.ts'
import { waitingForUser } from '../support/locks.ts'
import { codeTo, kindsTo, mailSection } from '../support/mailed.ts'
import { runs } from '../support/property-runs.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeWithServices } from '../support/services.ts'
import { describeOverSetups, services } from '../support/setups.ts'

const rounds = runs(12, 6)

const path = '/api/v1/auth/identities'
const removed = { message: 'Connexion externe supprimée' }
const unknown = [404, 'provider_unknown', 'Fournisseur inconnu'] as const
const last = [409, 'last_sign_in_method', 'Dernier moyen de connexion'] as const
const notSet = [409, 'password_not_set', 'Aucun mot de passe défini'] as const
const ended = [401, 'token_invalid', 'Token invalide ou expiré'] as const
const newPassword = 'un nouveau mot de passe'
const yaml = () => `account: { deletion: true }\n${mailSection()}`

/** Returns the error code of a response, or the status if the response has no error code. */
async function toldBy(answer: ReturnType<typeof call>): Promise<string | number> {
  const { status, headers } = await answer
  return headers.get('x-peage-error') ?? status
}

describeOverSetups('the identities of a user', setup => {
  const at = journey(setup, { auth: providers }, yaml)
  const list = ({ access: token }: TestUser) => call(at.gateway.url, 'GET', path, { token })
  const remove = ({ access: token }: TestUser, provider: string, base = at.gateway.url) =>
    call(base, 'DELETE', `${path}/${provider}`, { token })
  const post = (path: string, body: object, token?: string) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, { body, ...(token === undefined ? {} : { token }) })
  /** Resets the password by mail. */
  async function resetByMail({ email }: TestUser): Promise<void> {
    expect((await post('password/forgot', { email })).status).toBe(202)
    const { token } = await codeTo(at.gateway, email)
    expect((await post('password/reset', { token, new_password: newPassword })).status).toBe(200)
  }

  it('are listed oldest first with the name of the provider, or with the issuer if no configured provider has it', async () => {
    const user = await newUser(at.gateway)
    expectAnswer(await list(user), 200, { identities: [] })
    await giveIdentities(at.gateway, await newUser(at.gateway), 'google')
    await giveIdentities(at.gateway, user, 'gone', 'keycloak', 'unused')
    await at.gateway.sql(
      "update identities set last_used_at = '2026-02-03T04:05:06Z', email = null where user_id = $1 and issuer = $2",
      [user.id, issuers.keycloak],
    )
    const email = 'me@provider.example'
    expectAnswer(await list(user), 200, {
      identities: [
        { provider: issuers.gone, email, created_at: '2026-01-02T03:05:00.000Z', last_used_at: null },
        {
          ...{ provider: 'keycloak', email: null, created_at: '2026-01-02T03:06:00.000Z' },
          last_used_at: '2026-02-03T04:05:06.000Z',
        },
        { provider: issuers.unused, email, created_at: '2026-01-02T03:07:00.000Z', last_used_at: null },
      ],
    })
  })

  it('can be removed by the name of the provider in any letter case, and no session ends', async () => {
    const [user, other] = [await newUser(at.gateway), await newUser(at.gateway)]
    for (const each of [user, other]) await giveIdentities(at.gateway, each, 'google', 'keycloak')
    expectAnswer(await remove(user, 'GOOGLE'), 200, removed)
    expect(await issuersOf(at.gateway, user)).toEqual([issuers.keycloak])
    expectRefusal(await remove(user, 'google'), ...unknown)
    expectAnswer(await remove(user, 'keycloak'), 200, removed)
    expect(await issuersOf(at.gateway, user)).toEqual([])
    expect(await issuersOf(at.gateway, other)).toEqual([issuers.google, issuers.keycloak].sort())
    expect((await post('refresh', { refresh_token: user.refresh })).status).toBe(200)
    expect(await kindsTo(at.gateway, user.email)).toEqual(['identity_removed', 'identity_removed'])
    expect(await kindsTo(at.gateway, other.email)).toEqual([])
  })

  it('are not removed if the name is not the name of a configured provider, or the user has no identity of this provider', async () => {
    const user = await newUser(at.gateway)
    await giveIdentities(at.gateway, user, 'unused', 'gone')
    for (const name of ['unused', 'github', 'google', 'constructor', '%C3%A9', 'x'.repeat(5_000)])
      expectRefusal(await remove(user, name), ...unknown)
    for (const issuer of [issuers.gone, issuers.unused])
      expectRefusal(
        await remove(user, encodeURIComponent(issuer)),
        ...([400, 'path_invalid', 'Chemin invalide'] as const),
      )
    expect(await issuersOf(at.gateway, user)).toHaveLength(2)
    expect(await kindsTo(at.gateway, user.email)).toEqual([])
  })

  it('can be listed and removed only with an access token of a live session', async () => {
    const user = await newUser(at.gateway)
    await giveIdentities(at.gateway, user, 'google')
    await post('logout', { refresh_token: user.refresh })
    expectRefusal(await list(user), ...ended)
    expectRefusal(await remove(user, 'google'), ...ended)
    expectRefusal(await call(at.gateway.url, 'GET', path), ...ended)
    expect(await issuersOf(at.gateway, user)).toEqual([issuers.google])
  })

  it('can be removed, but an account without a password keeps one identity of a configured provider', async () => {
    const user = await newUser(at.gateway)
    await takePassword(at.gateway, user)
    await giveIdentities(at.gateway, user, 'google', 'unused', 'gone')
    // The other identities are no way to sign in, because their providers are not configured.
    expectRefusal(await remove(user, 'google'), ...last)
    await giveIdentities(at.gateway, user, 'keycloak')
    expectAnswer(await remove(user, 'google'), 200, removed)
    expectRefusal(await remove(user, 'keycloak'), ...last)
    expectRefusal(await remove(user, 'google'), ...unknown)
    await resetByMail(user)
    const again = { ...user, ...(await login(at.gateway.url, user.email, newPassword)) }
    await giveIdentities(at.gateway, user, 'google')
    expectAnswer(await remove(again, 'google'), 200, removed)
  })

  const changes: [string, (tx: Queryable, user: TestUser) => Promise<unknown>, string, number][] = [
    [
      'the password',
      (tx, { id }) => tx.query("update users set password_hash = '!' where id = $1", [id]),
      'last_sign_in_method',
      1,
    ],
    [
      'the other identity',
      async (tx, { id }) => {
        await tx.query("update users set password_hash = '!' where id = $1", [id])
        await tx.query('delete from identities where user_id = $1 and issuer = $2', [id, issuers.keycloak])
      },
      'last_sign_in_method',
      1,
    ],
    [
      'the activity of the user',
      (tx, { id }) => tx.query('update users set is_active = 0 where id = $1', [id]),
      'user_not_found',
      1,
    ],
    [
      'the session',
      (tx, { id }) => tx.query('update users set session_epoch = session_epoch + 1 where id = $1', [id]),
      'token_invalid',
      1,
    ],
    [
      'the identity',
      (tx, { id }) => tx.query('delete from identities where user_id = $1', [id]),
      'provider_unknown',
      0,
    ],
    [
      'the user',
      (tx, { id }) => tx.query('delete from users where id = $1', [id]),
      // On the embedded database, the request waits before it checks the session. The deletion of the user also deletes
      // the session, so this check fails first.
      setup === services ? 'user_not_found' : 'token_invalid',
      0,
    ],
  ]
  it.each(changes)(
    'are removed only after the row of the user is locked and %s is then checked',
    async (what, change, code, rest) => {
      const user = await newUser(at.gateway)
      await giveIdentities(at.gateway, user, 'google')
      if (what === 'the other identity') await giveIdentities(at.gateway, user, 'keycloak')
      // This call stores the user and the session, as they are before the change, in the caches of the gateway.
      expect((await list(user)).status).toBe(200)
      const answer = await at.gateway.backing.database.transaction(async tx => {
        await tx.query('select from users where id = $1 for no key update', [user.id])
        const waiting = toldBy(remove(user, 'google'))
        await waitingForUser(setup, at.gateway.backing.database)
        await change(tx, user)
        return { waiting }
      })
      expect(await answer.waiting).toBe(code)
      expect(await issuersOf(at.gateway, user)).toHaveLength(rest)
      expect(await kindsTo(at.gateway, user.email)).toEqual([])
    },
  )

  it('are deleted with the account, even during concurrent removals, and no response is a 5xx', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await newUser(at.gateway)
      await giveIdentities(at.gateway, user, 'google', 'keycloak')
      const body = { current_password: user.password }
      const deletion = toldBy(
        call(at.gateway.url, 'DELETE', '/api/v1/auth/account', { token: user.access, body }),
      )
      const racing = ['google', 'keycloak', 'google'].map(name => toldBy(remove(user, name)))
      for (const told of await Promise.all(racing))
        expect([200, 'provider_unknown', 'user_not_found', 'token_invalid']).toContain(told)
      expect(await deletion).toBe(200)
      expect(await issuersOf(at.gateway, user)).toEqual([])
    }
  })

  it('can be removed during a password reset by mail, and the user can then sign in with the new password', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await newUser(at.gateway)
      await takePassword(at.gateway, user)
      if (round % 2 === 0)
        await at.gateway.sql('update users set email_verified_at = now() where id = $1', [user.id])
      await giveIdentities(at.gateway, user, 'google', 'keycloak')
      await post('password/forgot', { email: user.email })
      const { token } = await codeTo(at.gateway, user.email)
      const [reset, ...removals] = await Promise.all([
        toldBy(post('password/reset', { token, new_password: newPassword })),
        toldBy(remove(user, 'google')),
        toldBy(remove(user, 'keycloak')),
      ])
      expect(reset).toBe(200)
      for (const told of removals)
        expect([200, 'last_sign_in_method', 'provider_unknown', 'token_invalid']).toContain(told)
      expect((await post('login', { email: user.email, password: newPassword })).status).toBe(200)
    }
  })

  it('are removed when the password of an unverified email is reset, because an attacker may have added them', async () => {
    const user = await newUser(at.gateway)
    await giveIdentities(at.gateway, user, 'google', 'gone')
    await resetByMail(user)
    expect(await issuersOf(at.gateway, user)).toEqual([])
    expect((await kindsTo(at.gateway, user.email)).sort()).toEqual([
      'identity_removed',
      'password_changed',
      'reset',
    ])
  })

  it('stay after a password reset by mail if the email was already verified, and after an email verification', async () => {
    const [user, verifying] = [await newUser(at.gateway), await newUser(at.gateway)]
    for (const each of [user, verifying]) await giveIdentities(at.gateway, each, 'google')
    await at.gateway.sql('update users set email_verified_at = now() where id = $1', [user.id])
    await resetByMail(user)
    expect(await issuersOf(at.gateway, user)).toEqual([issuers.google])
    await post('email/verify/request', {}, verifying.access)
    const { token } = await codeTo(at.gateway, verifying.email)
    expect((await post('email/verify', { token })).status).toBe(200)
    expect(await issuersOf(at.gateway, verifying)).toEqual([issuers.google])
  })

  it('are in the export of the account', async () => {
    const user = await newUser(at.gateway)
    await giveIdentities(at.gateway, user, 'keycloak', 'gone')
    const { body } = await call(at.gateway.url, 'GET', '/api/v1/auth/account/export', { token: user.access })
    const stored = { sub: `sub of ${user.id}`, email: 'me@provider.example', last_used_at: null }
    expect(body.identities).toEqual([
      { issuer: issuers.keycloak, ...stored, created_at: '2026-01-02T03:05:00.000Z' },
      { issuer: issuers.gone, ...stored, created_at: '2026-01-02T03:06:00.000Z' },
    ])
  })
})

describeWithServices('the identities of a user on two replicas', () => {
  const at = journey(services, { auth: providers }, yaml)

  it('can be removed at the same time, but exactly one stays if the account has no password', async () => {
    const other = await startGateway(yaml(), at.stores, { auth: providers })
    try {
      for (let round = 0; round < rounds; round += 1) {
        const user = await newUser(at.gateway)
        await takePassword(at.gateway, user)
        await giveIdentities(at.gateway, user, 'google', 'keycloak')
        const told = await Promise.all(
          ['google', 'keycloak'].flatMap((name, n) =>
            [at.gateway, other].map(({ url }, m) =>
              toldBy(
                call(url, 'DELETE', `${path}/${(n + m) % 2 === 0 ? name : 'google'}`, { token: user.access }),
              ),
            ),
          ),
        )
        for (const each of told) expect([200, 'last_sign_in_method', 'provider_unknown']).toContain(each)
        expect(told.filter(each => each === 200)).toHaveLength(1)
        expect(await issuersOf(at.gateway, user)).toHaveLength(1)
      }
    } finally {
      await other.stop()
    }
  })
})

describeOverSetups('an account without a password', setup => {
  const at = journey(
    setup,
    { auth: providers, rateLimits: 'rate_limits: { register: 0, login_failures: 1/5m, refresh: 0 }' },
    () => `account: { deletion: true }\n${mailSection(', notices: false')}`,
  )
  const ask = (method: string, name: string, user: TestUser, body?: object) =>
    call(at.gateway.url, method, `/api/v1/auth/${name}`, { token: user.access, body })
  const post = (name: string, body: object) => call(at.gateway.url, 'POST', `/api/v1/auth/${name}`, { body })
  const hasPassword = async (user: TestUser) => (await ask('GET', 'account', user)).body.has_password

  it('gets 409 from endpoints that need the current password, and the 409 does not count as a failed login', async () => {
    const user = await newUser(at.gateway)
    expect(await hasPassword(user)).toBe(true)
    await takePassword(at.gateway, user)
    expect(await hasPassword(user)).toBe(false)
    for (const current_password of ['!', '', user.password]) {
      const change = { current_password, new_password: newPassword }
      expectRefusal(await ask('POST', 'password', user, change), ...notSet)
      const email = { current_password, email: 'other@example.com' }
      expectRefusal(await ask('POST', 'email', user, email), ...notSet)
      expectRefusal(await ask('DELETE', 'account', user, { current_password }), ...notSet)
    }
    const wrong = await post('login', { email: user.email, password: 'a wrong password' })
    expectRefusal(wrong, 401, 'credentials_invalid', 'Identifiants invalides')
    expect((await post('login', { email: user.email, password: 'a wrong password' })).status).toBe(429)
    expect(await kindsTo(at.gateway, user.email)).toEqual([])
  })

  it('refuses every password with the response for a wrong password', async () => {
    for (const password of ['!', ' ', 'correct horse battery']) {
      const user = await newUser(at.gateway)
      await takePassword(at.gateway, user)
      const answer = await post('login', { email: user.email, password })
      expectRefusal(answer, 401, 'credentials_invalid', 'Identifiants invalides')
    }
  })

  it('can get a first password by mail, and keeps its identities if the email was already verified', async () => {
    const user = await newUser(at.gateway)
    await takePassword(at.gateway, user)
    await at.gateway.sql('update users set email_verified_at = now() where id = $1', [user.id])
    await giveIdentities(at.gateway, user, 'google')
    const { email } = user
    expect((await post('password/forgot', { email })).status).toBe(202)
    expect(await kindsTo(at.gateway, email)).toEqual(['reset'])
    const { token } = await codeTo(at.gateway, email)
    expectAnswer(await post('password/reset', { token, new_password: newPassword }), 200, {
      message: 'Mot de passe modifié',
    })
    const again = { ...user, ...(await login(at.gateway.url, email, newPassword)) }
    expect(await hasPassword(again)).toBe(true)
    expect(await issuersOf(at.gateway, user)).toEqual([issuers.google])
    expect((await ask('DELETE', 'identities/google', again)).status).toBe(200)
    // With `mail.notices: false`, no notice is stored.
    expect(await kindsTo(at.gateway, email)).toEqual(['reset'])
  })
})
