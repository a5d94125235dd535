// The console in a real browser, before a real gateway.
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { accessibilityFindings, openPage, startBrowser } from '../support/browser.ts'
import { newUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { describeWithChromium } from '../support/services.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

describeWithChromium('the page of the console', chromium => {
  let browser: Browser
  let gateway: TestGateway
  let upstream: Upstream
  const hostile = '<img src=x onerror=alert(1)>'

  beforeAll(async () => {
    upstream = await startUpstream()
    gateway = await startGateway(
      `upstreams: { echo: { targets: ['${upstream.url}'] } }
routes:
  - { name: courses, path: /courses/*, upstream: echo, plans: [premium, pro], rate_limit: 9/1m }
  - { name: public, path: /public/*, upstream: echo, auth: none }`,
      undefined,
      {
        admin:
          ', tokens: { ops: a-token-for-operators-0123456789, reader: {token: a-token-for-readers-012345678901, may: read}, billing: {token: a-token-for-billing-01234567890123, may: billing} }',
      },
    )
    await newUser(gateway, 'free')
    await newUser(gateway, 'free')
    await gateway.sql(
      `insert into admin_audit (at, operator, method, route, user_id, changes, status, request_id)
       values (now(), $1, 'PATCH', $1, null, $2, 200, $1)`,
      [`${hostile}\u202e\u2066`, JSON.stringify({ x: `${hostile}\u202e` })],
    )
    browser = await startBrowser(chromium)
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    await upstream?.close()
  })

  async function signIn(token = gateway.adminToken, options = {}) {
    const watched = await openPage(browser, options)
    await watched.page.goto(`${gateway.admin}/console`)
    await watched.page.locator('input[type=password]').fill(token)
    await watched.page.keyboard.press('Enter')
    await watched.page.locator('nav').waitFor()
    return watched
  }

  it.each([
    ['en', 1280, 'light'],
    ['fr', 360, 'dark'],
  ] as const)(
    'shows its pages in %s, %i px wide and %s, with nothing to complain of',
    async (locale, width, colorScheme) => {
      const { page, complaints } = await signIn(undefined, {
        locale,
        colorScheme,
        viewport: { width, height: 900 },
      })
      for (const id of ['overview', 'routes', 'users', 'users/1', 'deliveries', 'audit', 'configuration']) {
        await page.goto(`${gateway.admin}/console#${id}`)
        await page.locator(`nav a[aria-current=page][href="#${id.split('/')[0]}"]`).waitFor()
        await page.locator('h1').waitFor()
        await page.locator('main p.quiet[role=status]').first().waitFor({ state: 'detached' })
        expect([id, await accessibilityFindings(page)]).toEqual([id, []])
        expect([id, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([id, width])
      }
      expect(await page.evaluate('document.documentElement.lang')).toBe(locale)
      expect(complaints).toEqual([])
    },
  )

  it('puts in as text what came from outside, and writes out what would not be seen', async () => {
    const { page, complaints } = await signIn()
    await page.goto(`${gateway.admin}/console#audit`)
    await page.getByText(`${hostile}\\u202e\\u2066`).first().waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  it('changes a user by the keyboard alone: says what it will do, and what it did', async () => {
    const { page, complaints } = await signIn()
    await page.goto(`${gateway.admin}/console#users/1`)
    await page.getByRole('button', { name: 'Change plan' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('gets plan premium').waitFor()
    await page.keyboard.press('Tab')
    await page.getByRole('button', { name: 'Confirm' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('The plan is premium.').waitFor()
    expect(await gateway.sql('select plan from users where id = 1')).toEqual([{ plan: 'premium' }])
    expect(complaints).toEqual([])
  })

  it('says in two clicks why a user is refused', async () => {
    const { page, complaints } = await signIn()
    await page.goto(`${gateway.admin}/console#users/2`)
    await page.getByLabel('Path').fill('/courses/1')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('403 plan_insufficient').waitFor()
    expect(complaints).toEqual([])
  })

  it('shows a role what it may do', async () => {
    const billing = await signIn('a-token-for-billing-01234567890123')
    expect(await billing.page.locator('nav a').allTextContents()).toEqual(['Users'])
    await billing.page.goto(`${gateway.admin}/console#users/1`)
    await billing.page.locator('h1').waitFor()
    expect(await billing.page.locator('main button').allTextContents()).toEqual(['Change plan'])
    const reader = await signIn('a-token-for-readers-012345678901')
    await reader.page.goto(`${gateway.admin}/console#users/1`)
    await reader.page.locator('dl').waitFor()
    expect(await reader.page.locator('main button').allTextContents()).toEqual(['Explain'])
  })

  it('refuses a wrong token, and keeps the right one nowhere', async () => {
    const { page, complaints } = await openPage(browser, {}, [401])
    await page.goto(`${gateway.admin}/console`)
    await page.locator('input[type=password]').fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    await page.locator('input[type=password]').fill(gateway.adminToken)
    await page.keyboard.press('Enter')
    await page.locator('nav').waitFor()
    const kept = await page.evaluate(
      '[JSON.stringify(localStorage), document.cookie, document.body.innerHTML].join()',
    )
    expect(kept).not.toContain(gateway.adminToken)
    expect(page.url()).not.toContain(gateway.adminToken)
    expect(gateway.log.join('\n')).not.toContain(gateway.adminToken)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await page.context().cookies()).toEqual([])
    expect(complaints).toEqual([])
  })
})
