// Opens pages in a real Chromium, and records the errors of these pages.
import AxeBuilder from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'

export function startBrowser(bin: string): Promise<Browser> {
  return chromium.launch({ executablePath: bin, args: ['--no-sandbox', '--disable-gpu'] })
}

export interface Watched {
  readonly page: Page
  /** The page's console errors, console warnings and uncaught errors. Chromium logs violations of the CSP as errors. */
  readonly complaints: string[]
}

/** @param ignored status codes that the test expects; Chromium's errors about these responses are not recorded */
export async function openPage(
  browser: Browser,
  options: BrowserContextOptions = {},
  ignored: readonly number[] = [],
): Promise<Watched> {
  const context = await browser.newContext({
    locale: 'en',
    viewport: { width: 1280, height: 900 },
    ...options,
  })
  // This is less than the time limit of a test. So if a step waits too long, the error message shows which step it was.
  context.setDefaultTimeout(20_000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', message => {
    const isIgnored = ignored.some(status => message.text().includes(`status of ${status}`))
    if (['error', 'warning'].includes(message.type()) && !isIgnored) complaints.push(message.text())
  })
  page.on('pageerror', error => complaints.push(String(error)))
  return { page, complaints }
}

/** Waits until the tables of the page have `count` rows in total. While a list is loading, the page has no table. */
export async function waitForRows(page: Page, count: number): Promise<void> {
  await expect.poll(() => page.locator('tbody tr').count()).toBe(count)
}

/** Returns the serious accessibility problems that axe-core finds, as lines like `rule: selector`. */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  // The content security policy would block a script element. It does not block `evaluate`, which uses the debugger.
  await page.evaluate(AxeBuilder.source)
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { target: string[] }[] }[] }> }
    }
    const { violations } = await axe.run()
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
  })
}
