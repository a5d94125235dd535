// Opens the console in Chromium, signs in, and measures the resource usage of the tab.
import { once } from 'node:events'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { WebSocket } from 'ws'
import type { OverviewSeries } from '../../src/admin/overview.ts'
import { startMeasured, temporaryFolder } from '../support/processes.ts'
import { canConnect, findProgram, freePort } from '../support/servers.ts'
import { residentOf } from './memory.ts'
import { MiB } from './noise.ts'

/** The resource usage of the tab after a garbage collection. */
export interface TabMemory {
  /** The heap in MiB. */
  readonly heap: number
  /** The resident memory of the tab's process in MiB. */
  readonly resident: number
  /** The number of elements of the page. */
  readonly nodes: number
  readonly listeners: number
}

export interface ConsoleTab {
  /**
   * Attaches a debugger to the page while `work` runs. `work` should be short, because the tab keeps every response in
   * memory while a debugger is attached.
   */
  looking<T>(work: (page: Page) => Promise<T>): Promise<T>
  /** Returns the IDs of the renderer processes. The first ID is the process of the tab. */
  pids(): Promise<number[]>
  /**
   * Waits until the page receives the next response of `/admin/v1/overview`.
   * @returns this overview, and the text that the page shows above the first chart
   */
  given(): Promise<{ overview: OverviewSeries & { step: number }; shown: string | null }>
  /** Shows an empty page, which sends nothing to the gateway. */
  leave(): Promise<void>
  comeBack(): Promise<void>
  memory(): Promise<TabMemory>
  close(): Promise<void>
}

/** @param admin the port of the admin listener */
export async function openConsole(admin: number, token: string): Promise<ConsoleTab> {
  const program = findProgram('chromium')
  if (program === undefined) throw new Error('The program chromium is missing. Install Chromium.')
  const port = await freePort()
  const { path: folder } = temporaryFolder()
  const browser = await startMeasured({
    program,
    flags: [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--accept-lang=en',
      '--window-size=1280,900',
      `--remote-debugging-port=${port}`,
      `--user-data-dir=${join(folder, 'profile')}`,
      'about:blank',
    ],
    folder,
    user: undefined,
    port,
    url: `http://127.0.0.1:${port}`,
    isReady: () => canConnect(port),
  })

  async function looking<T>(work: (page: Page) => Promise<T>): Promise<T> {
    const attached = await chromium.connectOverCDP(`http://127.0.0.1:${port}`)
    try {
      const page = attached.contexts()[0]?.pages()[0]
      if (page === undefined) throw new Error('the browser has no page')
      return await work(page)
    } finally {
      await attached.close()
    }
  }

  async function show(page: Page): Promise<void> {
    await page.goto(`http://127.0.0.1:${admin}/console`)
  }

  async function pids(): Promise<number[]> {
    const [{ processInfo }] = await askBrowser<[ProcessInfo]>(port, 'browser', ['SystemInfo.getProcessInfo'])
    return (
      processInfo
        .filter(({ type }) => type === 'renderer')
        // Chromium also has spare processes. The process that has used the most CPU time belongs to the tab.
        .sort((one, other) => other.cpuTime - one.cpuTime)
        .map(({ id }) => id)
    )
  }

  await looking(async page => {
    await show(page)
    await page.locator('input[type=password]').fill(token)
    await page.keyboard.press('Enter')
    await page.locator('.verdict').waitFor()
  })

  return {
    looking,
    pids,
    given: () =>
      looking(async page => {
        const answer = await page.waitForResponse(one => one.url().endsWith('/admin/v1/overview'))
        const overview = await answer.json()
        await page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')
        return { overview, shown: await page.locator('figure .legend b').first().textContent() }
      }),
    leave: () =>
      looking(async page => {
        await page.goto('about:blank')
      }),
    comeBack: () =>
      looking(async page => {
        await show(page)
        await page.locator('.verdict').waitFor()
      }),
    async memory() {
      const asked = ['Performance.enable', 'HeapProfiler.collectGarbage', 'Performance.getMetrics']
      const [, , { metrics }] = await askBrowser<[object, object, Metrics]>(port, 'page', asked)
      const metricOf = (wanted: string) => metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN
      return {
        heap: metricOf('JSHeapUsedSize') / MiB,
        resident: residentOf((await pids())[0] ?? 0),
        nodes: metricOf('Nodes'),
        listeners: metricOf('JSEventListeners'),
      }
    },
    close: browser.stop,
  }
}

interface ProcessInfo {
  readonly processInfo: { readonly type: string; readonly cpuTime: number; readonly id: number }[]
}

interface Metrics {
  readonly metrics: { readonly name: string; readonly value: number }[]
}

/**
 * Calls methods of the Chrome DevTools protocol, one after the other. Does not use Playwright, because Playwright
 * leaves objects in the page, which would change the measurement.
 * @returns the results of the methods
 */
async function askBrowser<Results extends unknown[]>(
  port: number,
  whom: 'page' | 'browser',
  methods: readonly string[],
): Promise<Results> {
  const answer = await fetch(`http://127.0.0.1:${port}/json/${whom === 'browser' ? 'version' : 'list'}`)
  const described = [await answer.json()].flat() as { type?: string; webSocketDebuggerUrl: string }[]
  const target = described.find(({ type }) => whom === 'browser' || type === 'page')
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? '')
  await once(socket, 'open')
  const results: unknown[] = []
  try {
    for (const [id, method] of methods.entries()) {
      const answered = new Promise(resolve => {
        socket.on('message', data => {
          const message = JSON.parse(String(data)) as { id?: number; result: unknown }
          if (message.id === id) resolve(message.result)
        })
      })
      socket.send(JSON.stringify({ id, method }))
      results.push(await answered)
    }
  } finally {
    socket.close()
  }
  return results as Results
}
