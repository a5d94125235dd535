// Opens pages of the console in a real browser, as an operator with a role.
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { accessibilityFindings, openPage, startBrowser } from '../support/browser.ts'
import type { TestGateway } from '../support/gateway.ts'
import { tokens } from '../support/operator-tokens.ts'

type Role = keyof typeof tokens
type At = { readonly gateway: Pick<TestGateway, 'admin'> }

/**
 * Starts a browser for the tests of a suite. After each test, checks that no page has reported an error or a warning.
 * @param at the gateway of the suite
 * @returns a function that signs in to the console with the token of a role
 */
export function consolePages(chromium: string, at: At) {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser(chromium)
  })
  afterAll(() => browser?.close())

  const complaints: string[][] = []
  afterEach(async () => {
    await Promise.all(browser.contexts().map(context => context.close()))
    expect(complaints.splice(0).flat()).toEqual([])
  })

  return async (role: Role, options: BrowserContextOptions = {}): Promise<Page> => {
    const { page, complaints: reported } = await openPage(browser, options)
    complaints.push(reported)
    await page.goto(`${at.gateway.admin}/console`)
    await page.locator('input[type=password]').fill(tokens[role])
    await page.keyboard.press('Enter')
    await page.locator('nav').waitFor()
    return page
  }
}

/** Starts a browser, like `consolePages`. @returns a function that signs in and opens the page of the user `id` */
export function userPages(chromium: string, at: At) {
  const signIn = consolePages(chromium, at)
  return async (id: number, role: Role, options: BrowserContextOptions = {}): Promise<Page> => {
    const page = await signIn(role, options)
    await page.goto(`${at.gateway.admin}/console#users/${id}`)
    await page.locator('dl').waitFor()
    return page
  }
}

/** Returns the table of the section with this heading. */
export function tableOf(page: Page, title: string): Locator {
  return page
    .locator('section', { has: page.getByRole('heading', { name: title, exact: true }) })
    .locator('table')
}

/** Expects that the page is accessible, and that neither the page nor the table is wider than the window. */
export async function expectFitsEveryWindow(page: Page, table: Locator): Promise<void> {
  expect(await accessibilityFindings(page)).toEqual([])
  for (const width of [360, 720, 1000, 1280]) {
    await page.setViewportSize({ width, height: 900 })
    expect([width, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([width, width])
    const excess = await table.evaluate(
      element => element.offsetWidth - (element.parentElement?.clientWidth ?? 0),
    )
    expect([width, excess <= 0]).toEqual([width, true])
  }
}
