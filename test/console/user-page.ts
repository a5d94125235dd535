// Opens the page of a user in the console, in a real browser.
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { openPage, startBrowser } from '../support/browser.ts'
import type { TestGateway } from '../support/gateway.ts'
import { tokens } from './operator-tokens.ts'

/**
 * Starts a browser for the tests of a suite. After each test, no page may have reported an error or a warning.
 * @param at the gateway of the suite
 * @returns a function that signs in with the token of a role and opens the page of the user with the id
 */
export function userPages(chromium: string, at: { readonly gateway: Pick<TestGateway, 'admin'> }) {
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

  return async (
    id: number,
    role: keyof typeof tokens,
    options: BrowserContextOptions = {},
  ): Promise<Page> => {
    const { page, complaints: reported } = await openPage(browser, options)
    complaints.push(reported)
    await page.goto(`${at.gateway.admin}/console`)
    await page.locator('input[type=password]').fill(tokens[role])
    await page.keyboard.press('Enter')
    await page.locator('nav').waitFor()
    await page.goto(`${at.gateway.admin}/console#users/${id}`)
    await page.locator('dl').waitFor()
    return page
  }
}
