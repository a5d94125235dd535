// Tests in a real browser how the console shows and removes the identities of a user.
import { expect, it } from 'vitest'
import { newUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { issuers, issuersOf, providers } from '../support/identities.ts'
import { adminWithTokens } from '../support/operator-tokens.ts'
import { describeWithChromium } from '../support/services.ts'
import { startUpstream } from '../support/upstream.ts'
import { expectFitsEveryWindow, tableOf, userPages } from './user-page.ts'

describeWithChromium('the identities of a user in the console', chromium => {
  const at = gatewayBefore(startUpstream, () => '', { admin: adminWithTokens, auth: providers })
  const openUser = userPages(chromium, at)

  /** Creates a user with two identities: one of a known provider, and one with an unknown issuer and HTML in the ID. */
  async function newUserWithIdentities() {
    const user = await newUser(at.gateway)
    await at.gateway.sql(
      `insert into identities (issuer, sub, user_id, email, created_at, last_used_at)
       values ($2, '10769-' || $1::bigint, $1::bigint, 'me@gmail.example', '2026-01-02', '2026-02-03'),
              ($3, $4 || $1::bigint::text, $1::bigint, null, '2026-01-03', null)`,
      [user.id, issuers.google, issuers.gone, `<b>\u202e${'w'.repeat(255)}`],
    )
    return user
  }

  it.each([
    [
      ...(['en', 'light', 'Sign-in with other providers'] as const),
      ...(['2/3/26, 12:00:00', 'never', 'none', 'Remove identity'] as const),
    ],
    [
      ...(['fr', 'dark', 'Connexion par d’autres fournisseurs'] as const),
      ...(['03/02/2026 00:00:00', 'jamais', 'aucun', 'Retirer l’identité'] as const),
    ],
  ] as const)(
    'are listed in the language %s and the color scheme %s with provider, email, ID and times, and fit every window',
    async (locale, colorScheme, title, used, never, none, remove) => {
      const { id } = await newUserWithIdentities()
      const page = await openUser(id, 'support', { locale, colorScheme, timezoneId: 'UTC' })
      const rows = tableOf(page, title).locator('tbody tr')
      await rows.first().waitFor()
      const shown = (await rows.allInnerTexts()).map(text => text.replace(/\s+/g, ' '))
      expect(shown).toEqual(Array(2).fill(expect.any(String)))
      const expected = [
        [`google ${issuers.google}`, 'me@gmail.example', `10769-${id}`, used, remove],
        [issuers.gone, `<b>\\u202e${'w'.repeat(255)}${id}`, none, never, remove],
      ]
      for (const [i, texts] of expected.entries()) for (const text of texts) expect(shown[i]).toContain(text)
      await expectFitsEveryWindow(page, tableOf(page, title))
    },
  )

  it('are removed one by one after a confirmation, and the audit log of the user then shows the issuer', async () => {
    const user = await newUserWithIdentities()
    const page = await openUser(user.id, 'support')
    const title = 'Sign-in with other providers'
    const dialog = page.locator('dialog')
    const rowOf = (provider: string) => tableOf(page, title).locator('tbody tr', { hasText: provider })
    const remove = async (provider: string) => {
      await rowOf(provider).getByRole('button', { name: 'Remove identity' }).click()
      await dialog.getByText(`The identity at ${provider} is removed from ${user.email}.`).waitFor()
    }
    await remove(issuers.gone)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(await issuersOf(at.gateway, user)).toHaveLength(2)
    for (const [provider, issuer] of [
      [issuers.gone, issuers.gone],
      ['google', issuers.google],
    ] as const) {
      await remove(provider)
      await dialog.getByRole('button', { name: 'Remove identity' }).click()
      await page.getByText(`The identity at ${provider} is removed.`).waitFor()
      expect(await issuersOf(at.gateway, user)).not.toContain(issuer)
      await rowOf(provider).waitFor({ state: 'detached' })
      const entry = tableOf(page, 'Audit of this user').locator('tbody tr').first()
      await entry.getByText(`Provider: ${issuer}`).waitFor()
      expect(await entry.innerText()).toContain('Remove identity')
    }
    expect(await page.getByText(title).count()).toBe(0)
  })

  it('have no buttons for the role "read", and are hidden for the role "billing"', async () => {
    const { id } = await newUserWithIdentities()
    const reader = await openUser(id, 'read')
    await tableOf(reader, 'Sign-in with other providers').locator('tbody tr').nth(1).waitFor()
    expect(await reader.getByRole('button', { name: /^Remove/ }).count()).toBe(0)
    const billing = await openUser(id, 'billing')
    expect(await billing.getByText('Sign-in with other providers').count()).toBe(0)
    expect(await billing.getByText('10769-').count()).toBe(0)
  })
})
