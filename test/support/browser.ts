// Opens pages in a real Chromium and records the errors that it reports.
import AxeBuilder from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'

export function startBrowser(bin: string): Promise<Browser> {
  return chromium.launch({ executablePath: bin, args: ['--no-sandbox', '--disable-gpu'] })
}

export interface Watched {
  readonly page: Page
  /** The errors of the page: console errors, errors in scripts, and violations of the content security policy. */
  readonly complaints: string[]
}

/** @param ignored status codes that the test causes on purpose; Chromium reports each one as a failed resource */
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
  // This is less than the time limit of a test, so that a failure names the step that waited.
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

/** Waits until the tables of the page have this number of rows. While a list is loading, the page has no table. */
export async function waitForRows(page: Page, count: number): Promise<void> {
  await expect.poll(() => page.locator('tbody tr').count()).toBe(count)
}

/** Returns the serious accessibility problems that axe-core finds, as lines like `rule: selector`. */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  // In the page, the content security policy would block this script. Through the debugger protocol, it is not blocked.
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
