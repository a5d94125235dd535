// Operators see and remove the identities that users have at other providers.
import { expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { giveIdentities, issuers, issuersOf, providers, takePassword } from '../support/identities.ts'
import { journey } from '../support/journey.ts'
import { kindsTo, mailSection } from '../support/mailed.ts'
import { adminWithTokens, tokens } from '../support/operator-tokens.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

describeOverSetups('the identities of a user in the admin API', setup => {
  const at = journey(setup, { admin: adminWithTokens, auth: providers }, () => mailSection())
  const ask = (method: string, path: string, token = tokens.all) =>
    call(at.gateway.admin, method, `/admin/v1/users/${path}`, { token })
  const auditOf = (id: number) =>
    at.gateway.sql<{ changes: object | null }>(
      'select operator, method, route, changes, status from admin_audit where user_id = $1 order by id',
      [id],
    )
  const route = '/admin/v1/users/:id/identities/:provider'
  const entry = (operator: string, provider: string) => ({
    ...{ operator, method: 'DELETE', route, changes: { provider }, status: 204 },
  })
  const unknown = [404, 'provider_unknown', 'Fournisseur inconnu'] as const

  it('are shown with issuer and `sub`, oldest first, to every role except "billing", and are also exported', async () => {
    const user = await newUser(at.gateway)
    expect((await ask('GET', `${user.id}`)).body.identities).toEqual([])
    await giveIdentities(at.gateway, user, 'google', 'unused')
    const stored = { sub: `sub of ${user.id}`, email: 'me@provider.example', last_used_at: null }
    const expected = [
      { issuer: issuers.google, ...stored, created_at: '2026-01-02T03:05:00.000Z' },
      { issuer: issuers.unused, ...stored, created_at: '2026-01-02T03:06:00.000Z' },
    ]
    for (const role of ['all', 'support', 'read'] as const)
      expect((await ask('GET', `${user.id}`, tokens[role])).body.identities).toEqual([
        { provider: 'google', ...expected[0] },
        { provider: issuers.unused, ...expected[1] },
      ])
    const { text, body } = await ask('GET', `${user.id}`, tokens.billing)
    expect(body).not.toHaveProperty('identities')
    expect(text).not.toContain(stored.sub)
    expect((await ask('GET', `${user.id}/export`)).body.identities).toEqual(expected)
  })

  it('can be removed by provider name or by issuer; each removal stores a notice and an audit entry', async () => {
    const [user, other] = [await newUser(at.gateway), await newUser(at.gateway)]
    for (const each of [user, other])
      await giveIdentities(at.gateway, each, 'google', 'keycloak', 'unused', 'gone')
    const remove = (provider: string, token?: string) =>
      ask('DELETE', `${user.id}/identities/${encodeURIComponent(provider)}`, token)
    expect((await remove('google', tokens.support)).status).toBe(204)
    for (const name of ['keycloak', 'unused', 'gone'] as const)
      expect((await remove(issuers[name])).status).toBe(204)
    expect(await issuersOf(at.gateway, user)).toEqual([])
    expect(await issuersOf(at.gateway, other)).toHaveLength(4)
    expect(await auditOf(user.id)).toEqual([
      entry('support', issuers.google),
      ...(['keycloak', 'unused', 'gone'] as const).map(name => entry('all', issuers[name])),
    ])
    expect(await kindsTo(at.gateway, user.email)).toEqual(Array(4).fill('identity_removed'))
  })

  it('can be removed even if the user is inactive or has no other way to sign in', async () => {
    const user = await newUser(at.gateway)
    await takePassword(at.gateway, user)
    await giveIdentities(at.gateway, user, 'google')
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    expect((await ask('DELETE', `${user.id}/identities/google`)).status).toBe(204)
    expect(await issuersOf(at.gateway, user)).toEqual([])
    // An inactive user gets no notice.
    expect(await kindsTo(at.gateway, user.email)).toEqual([])
  })

  it('are not removed for an unknown provider or user, nor by the roles "read" and "billing"', async () => {
    const [user, other] = [await newUser(at.gateway), await newUser(at.gateway)]
    await giveIdentities(at.gateway, user, 'google', 'gone')
    await giveIdentities(at.gateway, other, 'keycloak')
    const texts = ['x', 'unused', 'keycloak', 'GOOGLE', '%00', '%F0%9F%94%91', 'x'.repeat(5_000)]
    const others = [issuers.gone.toLowerCase(), issuers.keycloak, `${issuers.google}/`]
    for (const text of [...texts, ...others.map(encodeURIComponent)])
      expectRefusal(await ask('DELETE', `${user.id}/identities/${text}`), ...unknown)
    for (const id of ['999999999', 'x'])
      expectRefusal(
        await ask('DELETE', `${id}/identities/google`),
        ...([404, 'user_not_found', 'Utilisateur introuvable'] as const),
      )
    for (const role of ['read', 'billing'] as const)
      expectRefusal(
        await ask('DELETE', `${user.id}/identities/google`, tokens[role]),
        ...([403, 'admin_forbidden', 'Droits insuffisants'] as const),
      )
    expect(await issuersOf(at.gateway, user)).toHaveLength(2)
    expect(await kindsTo(at.gateway, user.email)).toEqual([])
    expect((await auditOf(user.id)).every(({ changes }) => changes === null)).toBe(true)
  })

  it('are not removed if the audit entry cannot be stored', async () => {
    const user = await newUser(at.gateway)
    await giveIdentities(at.gateway, user, 'google')
    await at.gateway.sql('alter table admin_audit rename to admin_audit_away')
    try {
      expect((await ask('DELETE', `${user.id}/identities/google`)).status).toBe(503)
    } finally {
      await at.gateway.sql('alter table admin_audit_away rename to admin_audit')
    }
    expect(await issuersOf(at.gateway, user)).toEqual([issuers.google])
    expect(await kindsTo(at.gateway, user.email)).toEqual([])
  })

  it('are shown with the new provider names after a reload', async () => {
    const user = await newUser(at.gateway)
    await giveIdentities(at.gateway, user, 'google')
    await at.gateway.configure(['google: {', 'g-suite: {'])
    expect((await ask('GET', `${user.id}`)).body.identities).toMatchObject([{ provider: 'g-suite' }])
    const own = await call(at.gateway.url, 'GET', '/api/v1/auth/identities', { token: user.access })
    expect(own.body.identities).toMatchObject([{ provider: 'g-suite' }])
    expect((await ask('DELETE', `${user.id}/identities/google`)).status).toBe(404)
    expect((await ask('DELETE', `${user.id}/identities/g-suite`)).status).toBe(204)
  })
})
