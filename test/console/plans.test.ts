// Tests in a real browser how the console shows plans and quotas, and how operators change them.
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { accessibilityFindings, waitForRows } from '../support/browser.ts'
import { call } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { adminWithTokens, tokens } from '../support/operator-tokens.ts'
import { describeWithChromium } from '../support/services.ts'
import { startUpstream } from '../support/upstream.ts'
import { consolePages } from './user-page.ts'

describeWithChromium('the plans and quotas in the console', chromium => {
  const at = gatewayBefore(
    startUpstream,
    upstream => `plans:
  - { name: starter, quotas: { exports: 100/month, reports: 0, views: 0 }, rate_limit: 10/1m }
  - { name: team, quotas: { exports: 1000/month, reports: 5/day, views: unlimited, mails: 0 }, rate_limit: 50/1500ms, api_keys: 2 }
  - { name: scale, quotas: { exports: 20/day, reports: unlimited, views: unlimited }, api_keys: 10, webhook: true }
upstreams: { echo: { targets: ['${upstream}'] } }
routes:
  - { name: exports, path: /exports, upstream: echo, quota: exports }
  - { name: batch, path: /batch, methods: [POST], upstream: echo, quota: { name: exports, cost: 10 }, plans: [starter, team], rate_limit: 9/1m }
  - { name: public, path: /public, upstream: echo, auth: none }
`,
    { limits: '', admin: adminWithTokens },
  )
  const signIn = consolePages(chromium, at)

  async function open(page: Page, id: string): Promise<void> {
    await page.goto(`${at.gateway.admin}/console#${id}`)
    await page.locator(`nav a[aria-current=page][href="#${id.split('/')[0]}"]`).waitFor()
    await page.locator('h1').waitFor()
    await page.locator('main p.quiet[role=status]').first().waitFor({ state: 'detached' })
  }

  async function confirm(page: Page, action: string): Promise<void> {
    await page.getByRole('button', { name: action, exact: true }).click()
    await page.locator('dialog').getByRole('button', { name: action, exact: true }).click()
    await page.locator('dialog').waitFor({ state: 'detached' })
  }

  let counter = 0
  /** @param uses the uses in the current periods, for example `exports month 42` for 42 uses of the quota exports */
  async function newUserOf(plan: string, ...uses: string[]): Promise<{ id: number; email: string }> {
    counter += 1
    const email = `${plan}${counter}@example.com`
    const [{ id } = { id: 0 }] = await at.gateway.sql<{ id: number }>(
      "insert into users (email, password_hash, plan) values ($1, '!', $2) returning id",
      [email, plan],
    )
    for (const use of uses) {
      const [quota, period, used] = use.split(' ')
      await at.gateway.sql(
        `insert into quota_usage (user_id, quota, period, period_start, used)
         values ($1, $2, $3, date_trunc($3, now() at time zone 'utc')::date, $4)`,
        [id, quota, period, used],
      )
    }
    return { id, email }
  }

  const adminGet = async (path: string) =>
    (await call(at.gateway.admin, 'GET', path, { token: tokens.all })).body
  const usesOf = async (id: number) =>
    Object.fromEntries(
      ((await adminGet(`/admin/v1/users/${id}`)).usage as { name: string; used: number }[]).map(
        ({ name, used }) => [name, used],
      ),
    )

  it.each([
    [
      ...(['en', 1280, 'light'] as const),
      [
        ['exports', '1000', '42', '42 of 1,000 this month (UTC)', '958 left, resets'],
        ['reports', '5', '7', '7 of 5 today (UTC)', '0 left, resets'],
      ],
      'Unlimited, not counted',
      'Not included in the plan',
    ],
    [
      ...(['fr', 390, 'dark'] as const),
      [
        ['exports', '1000', '42', '42 sur 1\u202f000 ce mois-ci (UTC)', 'reste 958, remise à zéro le'],
        ['reports', '5', '7', '7 sur 5 aujourd’hui (UTC)', 'reste 0, remise à zéro le'],
      ],
      'Illimité, non compté',
      'Non inclus dans la formule',
    ],
  ] as const)(
    'in the language %s, %i px wide and in the color scheme %s, the page of a user shows each quota as text, and limited quotas also as bars',
    async (locale, width, colorScheme, bars, unlimited, none) => {
      const { id } = await newUserOf('team', 'exports month 42', 'exports day 9', 'reports day 7')
      const page = await signIn('all', { locale, colorScheme, viewport: { width, height: 900 } })
      await open(page, `users/${id}`)
      const usage = (await adminGet(`/admin/v1/users/${id}`)).usage as { resets_at: string | null }[]
      const items = page.locator('.quotas > li')
      expect(await items.count()).toBe(4)
      for (const [index, [name, max, value, uses, rest]] of bars.entries()) {
        const bar = page.getByRole('meter', { name })
        expect([
          await bar.getAttribute('max'),
          await bar.getAttribute('value'),
          await bar.evaluate(meter => (meter as unknown as { ariaValueText: string }).ariaValueText),
          (await bar.boundingBox())?.width ?? 0,
        ]).toEqual([max, value, uses, expect.closeTo((await items.nth(index).boundingBox())?.width ?? 0)])
        const shown = await items.nth(index).innerText()
        expect(shown).toContain(uses)
        expect(shown).toContain(rest)
        const resetsAt = await items.nth(index).locator('time').getAttribute('datetime')
        expect(Date.parse(resetsAt ?? '')).toBe(Date.parse(usage[index]?.resets_at ?? 'missing'))
      }
      expect(await page.getByRole('meter').count()).toBe(2)
      expect(await items.nth(2).innerText()).toBe(`views\n\n${unlimited}`)
      expect(await items.nth(3).innerText()).toBe(`mails\n\n${none}`)
      expect(await page.locator('.quotas button').count()).toBe(2)
      // Only the plan `free` has a daily limit. This plan is not configured, so the page must show no daily uses.
      await expect
        .poll(() => page.locator('main').innerText())
        .not.toMatch(/Uses today|Usages du jour|Reset today|usages du jour/)
      for (const shown of [`users/${id}`, 'configuration']) {
        await open(page, shown)
        expect([shown, await accessibilityFindings(page)]).toEqual([shown, []])
        expect([shown, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([shown, width])
      }
    },
  )

  it('an operator with the role support resets one quota or all quotas after a confirmation', async () => {
    const { id, email } = await newUserOf('team', 'exports month 42', 'exports day 9', 'reports day 5')
    const page = await signIn('support')
    await open(page, `users/${id}`)
    await page.getByRole('button', { name: 'Reset exports' }).click()
    await page.locator('dialog').getByText(`The uses of quota exports by ${email} are reset to 0.`).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await usesOf(id)).toMatchObject({ exports: 42, reports: 5 })
    await confirm(page, 'Reset exports')
    await page.getByText('The uses of quota exports are reset to 0.').waitFor()
    await page.getByText('0 of 1,000 this month (UTC)').waitFor()
    await page.getByText('5 of 5 today (UTC)').waitFor()
    await page.locator('tbody tr').getByText('Quota: exports').waitFor()
    expect(await usesOf(id)).toMatchObject({ exports: 0, reports: 5 })
    await confirm(page, 'Reset all uses')
    await page.getByText('0 of 5 today (UTC)').waitFor()
    expect(await usesOf(id)).toMatchObject({ exports: 0, reports: 0 })
  })

  it.each(['read', 'billing'] as const)(
    'an operator with the role %s sees the quotas, but no button that resets a quota',
    async role => {
      const { id } = await newUserOf('team', 'exports month 42')
      const page = await signIn(role)
      await open(page, `users/${id}`)
      await page.getByText('42 of 1,000 this month (UTC)').waitFor()
      expect(await page.getByRole('button', { name: 'Reset' }).count()).toBe(0)
    },
  )

  it('every list of plans in a form contains the configured plans, even after a reload of the configuration', async () => {
    const page = await signIn('all')
    const optionsIn = async (selector: string) => {
      await page.locator(`${selector} option`, { hasText: 'starter' }).waitFor({ state: 'attached' })
      return page.locator(`${selector} option`).allTextContents()
    }
    const selections = async (id: number) => {
      await open(page, 'users')
      const filter = await optionsIn('search label:first-of-type + label select')
      await page.getByRole('button', { name: 'Create user' }).click()
      const ofNewUser = await optionsIn('dialog')
      await page.keyboard.press('Escape')
      await open(page, `users/${id}`)
      await page.getByRole('button', { name: 'Change plan' }).click()
      const ofUser = await optionsIn('dialog')
      await page.keyboard.press('Escape')
      await open(page, 'routes')
      return { filter, ofNewUser, ofUser, caller: await optionsIn('form label:has-text("Caller")') }
    }
    const names = ['starter', 'team', 'scale']
    const { id } = await newUserOf('team')
    expect(await selections(id)).toEqual({
      filter: ['any', ...names],
      ofNewUser: names,
      ofUser: ['starter', 'scale'],
      caller: ['Anonymous', ...names],
    })
    const restore = await at.gateway.configure(['name: scale', 'name: large'])
    try {
      await newUserOf('scale')
      const changed = ['starter', 'team', 'large']
      expect(await selections(id)).toEqual({
        filter: ['any', ...changed, 'scale (not configured)'],
        ofNewUser: changed,
        ofUser: ['starter', 'large'],
        caller: ['Anonymous', ...changed],
      })
    } finally {
      await restore()
    }
  })

  it('an operator creates a user with a plan, and finds and changes a user whose plan is marked as not configured', async () => {
    const { id, email } = await newUserOf('legacy', 'exports month 42')
    const page = await signIn('all')
    await open(page, 'users')
    await page.getByRole('button', { name: 'Create user' }).click()
    await page.locator('dialog input[type=email]').fill('new@example.com')
    await page.locator('dialog select').selectOption('scale')
    await page.locator('dialog').getByRole('button', { name: 'Create user' }).click()
    await page.getByText('new@example.com is created.').waitFor()
    expect(await at.gateway.sql("select plan from users where email = 'new@example.com'")).toEqual([
      { plan: 'scale' },
    ])
    await page.locator('search select').first().selectOption('legacy')
    await waitForRows(page, 1)
    expect(await page.locator('tbody tr').innerText()).toMatch(/legacy not configured/)
    await page.getByRole('link', { name: email }).click()
    await page.locator('dd').getByText('legacy').waitFor()
    await page.locator('dd').getByText('not configured').waitFor()
    expect(await page.getByRole('meter').count()).toBe(0)
    await page.getByRole('button', { name: 'Change plan' }).click()
    await page.locator('dialog select').selectOption('team')
    await page.locator('dialog').getByText(`${email} is on plan team from the next request on.`).waitFor()
    await page.locator('dialog').getByRole('button', { name: 'Change plan' }).click()
    await page.getByText('42 of 1,000 this month (UTC)').waitFor()
    expect(await page.getByText('not configured').count()).toBe(0)
    expect(await at.gateway.sql('select plan from users where id = $1', [id])).toEqual([{ plan: 'team' }])
  })

  it('the page of routes shows the quota and cost of a route, and explains a request after a given number of uses', async () => {
    const page = await signIn('read')
    await open(page, 'routes')
    const requirements = (route: string) =>
      page.locator('article', { has: page.getByRole('heading', { name: route }) }).locator('.tags li')
    await requirements('exports').getByText('Rate limit of the plan').waitFor()
    expect(await requirements('exports').allInnerTexts()).toEqual([
      ...['Signed in', 'Rate limit of the plan', 'A plan with quota exports'],
      'Quota exports: 1 per request',
    ])
    expect(await requirements('batch').allInnerTexts()).toEqual([
      ...['Signed in', 'Rate limit of the plan', 'At most 9 requests in 60 s per client'],
      ...['Plan: starter, team', 'Quota exports: 10 per request'],
    ])
    expect(await requirements('public').allInnerTexts()).toEqual(['Open to everyone'])
    const box = page.locator('form.line')
    expect(await box.getByLabel('Uses of the quota').count()).toBe(0)
    await box.getByLabel('Method').selectOption('POST')
    await box.getByLabel('Path').fill('/batch')
    await box.getByLabel('Caller').selectOption('team')
    const explain = async (used: number) => {
      await box.getByLabel('Uses of the quota').fill(String(used))
      await box.getByRole('button', { name: 'Explain' }).click()
    }
    const outcome = async () => (await page.locator('.outcome').innerText()).replace(/\s+/g, ' ')
    await explain(990)
    await expect.poll(outcome).toMatch(/^Would be forwarded to echo .* quota passes/)
    await explain(991)
    await expect
      .poll(outcome)
      .toMatch(/^Would be refused with 429 .* quota refuses The quota is used up\. 429 quota_exceeded/)
  })

  it('the page of the configuration shows each plan with its number of users, quotas, limits and features', async () => {
    await at.gateway.sql('delete from users')
    for (const plan of ['team', 'team', 'old']) await newUserOf(plan)
    const page = await signIn('read')
    await open(page, 'configuration')
    const rows = await page.locator('.plans > li').allInnerTexts()
    expect(rows.map(text => text.replace(/\s+/g, ' ').trim())).toEqual([
      'starter Users: 0 exports: 100/month reports: 0 views: 0 10 requests in 60 s',
      'team Users: 2 exports: 1000/month reports: 5/day views: unlimited mails: 0 50 requests in 2 s API keys: 2',
      'scale Users: 0 exports: 20/day reports: unlimited views: unlimited API keys: 10 Webhook',
      'old not configured Users: 1',
    ])
  })
})
