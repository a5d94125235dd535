// Tests in a real browser how the console shows and revokes the API keys of a user.
import { expect, it } from 'vitest'
import { giveKey, newUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { adminWithTokens } from '../support/operator-tokens.ts'
import { describeWithChromium } from '../support/services.ts'
import { startUpstream } from '../support/upstream.ts'
import { expectFitsEveryWindow, tableOf, userPages } from './user-page.ts'

describeWithChromium('the API keys of a user in the console', chromium => {
  const at = gatewayBefore(
    startUpstream,
    upstream => `upstreams: { echo: { targets: ['${upstream}'] } }
routes: [{ name: any, path: /any, upstream: echo }]
`,
    { admin: adminWithTokens },
  )
  const openUser = userPages(chromium, at)

  /** Creates a user with four keys. The newest key has HTML in its name. The others are `expired`, `revoked`, `CI`. */
  async function newUserWithKeys() {
    const user = await newUser(at.gateway, 'pro')
    await at.gateway.sql(
      `insert into api_keys
         (user_id, token_hash, name, prefix, scopes, created_at, expires_at, last_used_at, revoked_at)
       select $1::bigint, $1::bigint || name, name, prefix, scopes, timestamptz '2026-01-02T03:04:00Z' + n * interval '1 minute',
              expires_at, used_at::timestamptz, revoked_at
         from (values
           (1, 'CI', 'peage_AAAAAA', array['data:read', 'data:write'], timestamptz '2999-01-02', '2026-02-03', null),
           (2, 'revoked', 'peage_BBBBBB', null, null, null, now() - interval '1 day'),
           (3, 'expired', 'peage_CCCCCC', '{}', now() - interval '1 day', null, null),
           (4, $2::text, 'peage_DDDDDD', array[repeat('x', 64), repeat('y', 64)], null, null, null)
         ) as key (n, name, prefix, scopes, expires_at, used_at, revoked_at)`,
      [user.id, `<b>\u202e${'w'.repeat(50)}`],
    )
    return user
  }
  const liveOf = async (id: number) =>
    (
      await at.gateway.sql<{ prefix: string }>(
        'select prefix from api_keys where user_id = $1 and revoked_at is null order by prefix',
        [id],
      )
    ).map(({ prefix }) => prefix.at(-1))

  it.each([
    [
      ...(['en', 'light', 'API keys'] as const),
      ['live', 'expired', 'revoked'],
      ['1/2/99, 12:00:00', '2/3/26, 12:00:00'],
      ['no limit', 'none', 'never', 'Revoke key'],
    ],
    [
      ...(['fr', 'dark', 'Clés d’API'] as const),
      ['valide', 'expirée', 'révoquée'],
      ['02/01/2999', '03/02/2026 00:00:00'],
      ['sans limite', 'aucun', 'jamais', 'Révoquer la clé'],
    ],
  ] as const)(
    'are listed in the language %s and the color scheme %s with name, prefix, scopes, times and state, and fit every window',
    async (locale, colorScheme, title, [live, expired, revoked], [expires, used], [
      noLimit,
      none,
      never,
      revoke,
    ]) => {
      const { id } = await newUserWithKeys()
      const page = await openUser(id, 'support', { locale, colorScheme, timezoneId: 'UTC' })
      const rows = tableOf(page, title).locator('tbody tr')
      await rows.first().waitFor()
      const shown = (await rows.allInnerTexts()).map(text => text.replace(/\s+/g, ' '))
      expect(shown).toEqual(Array(4).fill(expect.any(String)))
      const expected = [
        [`<b>\\u202e${'w'.repeat(50)} peage_DDDDDD…`, 'x'.repeat(64), never, live, revoke],
        ['expired peage_CCCCCC…', none, never, expired],
        ['revoked peage_BBBBBB…', noLimit, never, revoked],
        ['CI peage_AAAAAA…', 'data:read, data:write', expires, used, live, revoke],
      ]
      for (const [i, texts] of expected.entries()) for (const text of texts) expect(shown[i]).toContain(text)
      for (const i of [1, 2]) expect(shown[i]).not.toContain(revoke)
      await expectFitsEveryWindow(page, tableOf(page, title))
    },
  )

  it('can be revoked individually after a confirmation, and the audit log of the user then shows the ID of the key', async () => {
    const user = await newUserWithKeys()
    const page = await openUser(user.id, 'support')
    const row = tableOf(page, 'API keys').locator('tbody tr', { hasText: 'peage_AAAAAA' })
    await row.getByRole('button', { name: 'Revoke key' }).click()
    const dialog = page.locator('dialog')
    await dialog.getByText(`The API key "CI" of ${user.email} stops working immediately.`).waitFor()
    expect(await liveOf(user.id)).toEqual(['A', 'C', 'D'])
    await dialog.getByRole('button', { name: 'Revoke key' }).click()
    await page.getByText('The API key "CI" is revoked.').waitFor()
    await row.getByText('revoked', { exact: true }).waitFor()
    expect(await row.getByRole('button').count()).toBe(0)
    expect(await liveOf(user.id)).toEqual(['C', 'D'])
    const [{ id } = { id: '' }] = await at.gateway.sql<{ id: string }>(
      "select id::text from api_keys where user_id = $1 and name = 'CI'",
      [user.id],
    )
    const entry = tableOf(page, 'Audit of this user').locator('tbody tr').first()
    await entry.getByText(`API key: ${id}`).waitFor()
    expect(await entry.innerText()).toContain('Revoke API key')
  })

  it('can be revoked all at once, including the key "api-token", and then only the button for all keys remains', async () => {
    const user = await newUserWithKeys()
    await giveKey(at.gateway, user, `peage_key_of_${user.id}`)
    const page = await openUser(user.id, 'all')
    await page.getByRole('button', { name: 'Revoke all API keys' }).click()
    await page.locator('dialog').getByRole('button', { name: 'Revoke all API keys' }).click()
    await page.getByText('All API keys are revoked.').waitFor()
    await page.getByText('No key "api-token".').waitFor()
    expect(await page.getByRole('button', { name: /^Revoke/ }).allTextContents()).toEqual([
      'Revoke all API keys',
    ])
    expect(await liveOf(user.id)).toEqual([])
    expect(
      await at.gateway.sql('select 1 from api_tokens where user_id = $1 and revoked = 0', [user.id]),
    ).toEqual([])
  })

  it('have no buttons for the role "read", and are hidden for the role "billing"', async () => {
    const { id } = await newUserWithKeys()
    const reader = await openUser(id, 'read')
    await tableOf(reader, 'API keys').locator('tbody tr').nth(3).waitFor()
    expect(await reader.getByRole('button', { name: /^Revoke/ }).count()).toBe(0)
    const billing = await openUser(id, 'billing')
    expect(await billing.getByText('API keys').count()).toBe(0)
    expect(await billing.getByText('peage_AAAAAA').count()).toBe(0)
  })
})
