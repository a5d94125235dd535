// A Chromium with the console's overview open, signed in, and what its tab takes.
import { chromium } from 'playwright-core'
import { atEnd } from '../cleanup.mjs'
import { findProgram } from '../programs.mjs'
import { residentOf } from './memory.mjs'
import { MiB } from './noise.mjs'

/**
 * @param {number} admin the port of the admin listener
 * @param {string} token
 */
export async function openConsole(admin, token) {
  const executablePath = findProgram('chromium')
  if (executablePath === undefined) throw new Error('chromium is needed, and is not on the search path')
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  const close = atEnd(() => browser.close())
  const page = await browser.newPage({ locale: 'en', viewport: { width: 1280, height: 900 } })
  const complaints = []
  page.on('pageerror', error => complaints.push(String(error)))
  page.on('console', message => message.type() === 'error' && complaints.push(message.text()))
  /** What the page was last given. */
  let overview
  let loads = 0
  page.on('response', async response => {
    if (!response.url().endsWith('/admin/v1/overview')) return
    overview = await response.json().catch(() => overview)
    loads += 1
  })
  await page.goto(`http://127.0.0.1:${admin}/console`)
  await page.locator('input[type=password]').fill(token)
  await page.keyboard.press('Enter')
  await page.locator('.verdict').waitFor()
  const tab = await page.context().newCDPSession(page)
  await tab.send('Performance.enable')
  const whole = await browser.newBrowserCDPSession()

  return {
    page,
    complaints,
    close,
    loads: () => loads,
    overview: () => overview,
    /** What is written above a chart, by its title. @param {string} title @returns {Promise<string[]>} */
    shown: title =>
      page
        .locator('figure', { has: page.locator('.chart-title', { hasText: title }) })
        .locator('.legend b')
        .allTextContents(),
    /** The gateway is asked nothing by a page that is not the console. */
    leave: () => page.goto('about:blank'),
    async comeBack() {
      await page.goto(`http://127.0.0.1:${admin}/console`)
      await page.locator('.verdict').waitFor()
    },
    /** After collection: MiB of the heap and of the tab's process, elements and listeners. */
    async memory() {
      await tab.send('HeapProfiler.collectGarbage')
      const { metrics } = await tab.send('Performance.getMetrics')
      const of = wanted => metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN
      const { processInfo } = await whole.send('SystemInfo.getProcessInfo')
      // Chromium keeps others at hand: the tab's is the one that works.
      const [renderer] = processInfo
        .filter(({ type }) => type === 'renderer')
        .sort((one, other) => other.cpuTime - one.cpuTime)
      return {
        heap: of('JSHeapUsedSize') / MiB,
        resident: residentOf(renderer?.id ?? 0),
        nodes: of('Nodes'),
        listeners: of('JSEventListeners'),
      }
    },
  }
}
