// A Chromium with the console's overview open, signed in, and what its tab takes.
import { chromium } from 'playwright-core'
import { freePort } from '../ports.mjs'
import { startServer, temporaryFolder } from '../processes.mjs'
import { findProgram } from '../programs.mjs'
import { askBrowser } from './devtools.mjs'
import { residentOf } from './memory.mjs'
import { MiB } from './noise.mjs'

/**
 * @param {number} admin the port of the admin listener
 * @param {string} token
 */
export async function openConsole(admin, token) {
  const executable = findProgram('chromium')
  if (executable === undefined) throw new Error('chromium is needed, and is not on the search path')
  const port = await freePort()
  const profile = temporaryFolder()
  const running = await startServer(
    executable,
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--accept-lang=en',
      '--window-size=1280,900',
      `--remote-debugging-port=${port}`,
      `--user-data-dir=${profile.path}`,
      'about:blank',
    ],
    { port },
  )
  const address = `http://127.0.0.1:${admin}/console`

  /**
   * Looks on while some work is done. Not longer: for who looks on the tab keeps every answer that it is given.
   * @template T
   * @param {(page: import('playwright-core').Page) => Promise<T>} work
   */
  async function looking(work) {
    const browser = await chromium.connectOverCDP(`http://127.0.0.1:${port}`)
    try {
      const page = browser.contexts()[0]?.pages()[0]
      if (page === undefined) throw new Error('the browser has no page')
      return await work(page)
    } finally {
      await browser.close()
    }
  }

  /** The tab's process is the one that has worked most: Chromium keeps others at hand. */
  async function pids() {
    const [{ processInfo }] = await askBrowser(port, 'browser', ['SystemInfo.getProcessInfo'])
    return processInfo
      .filter(({ type }) => type === 'renderer')
      .sort((one, other) => other.cpuTime - one.cpuTime)
      .map(({ id }) => id)
  }

  await looking(async page => {
    await page.goto(address)
    await page.locator('input[type=password]').fill(token)
    await page.keyboard.press('Enter')
    await page.locator('.verdict').waitFor()
  })

  return {
    looking,
    pids,
    async close() {
      await running.stop()
      await profile.remove()
    },
    /** What the page is given next, and what it writes above the first chart then. */
    given: () =>
      looking(async page => {
        const answer = await page.waitForResponse(one => one.url().endsWith('/admin/v1/overview'))
        const overview = await answer.json()
        await page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')
        return { overview, shown: await page.locator('figure .legend b').first().textContent() }
      }),
    /** The gateway is asked nothing by a page that is not the console. */
    leave: () => looking(page => page.goto('about:blank')),
    comeBack: () =>
      looking(async page => {
        await page.goto(address)
        await page.locator('.verdict').waitFor()
      }),
    /** After collection: MiB of the heap and of the tab's process, elements and listeners. */
    async memory() {
      const asked = ['Performance.enable', 'HeapProfiler.collectGarbage', 'Performance.getMetrics']
      const [, , { metrics }] = await askBrowser(port, 'page', asked)
      const of = wanted => metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN
      return {
        heap: of('JSHeapUsedSize') / MiB,
        resident: residentOf((await pids())[0] ?? 0),
        nodes: of('Nodes'),
        listeners: of('JSEventListeners'),
      }
    },
  }
}
