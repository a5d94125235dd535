// The console's page of users before 100,000 of them: searched by typing, and paged through.
import { cpuSeconds } from '../costs.mjs'
import { openConsole } from './console-tab.mjs'
import { adminToken, openStage } from './replicas.mjs'

const users = 100_000
const searches = ['user1', 'user99', 'user12345', 'nobody', '777', 'user']
const pages = 20
/** Milliseconds: until a page of users is there, half of them; of processor that the tab takes to show one. */
const most = { answer: 100, shown: 100 }

/** @param {import('./main.mjs').Watch} watch */
export async function manyUsers({ say, expect }) {
  const stage = await openStage()
  let tab
  try {
    const gateway = await stage.start()
    await stage.database.query(
      `insert into users (email, password_hash) select 'user' || i || '@example.com', 'none' from generate_series(1, $1) i`,
      [users],
    )
    await stage.database.query('analyze users')
    tab = await openConsole(gateway.admin, adminToken)
    await tab.looking(async page => {
      await page.locator('nav a[href="#users"]').click()
      await page.locator('tbody tr').first().waitFor()
      await page.evaluate(`globalThis.tasks = []
new PerformanceObserver(list => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })`)
      const pids = await tab.pids()
      const before = cpuSeconds(pids)
      const settled = async work => {
        const answered = page.waitForResponse(answer => answer.url().includes('/admin/v1/users?'))
        await work()
        await answered
      }
      for (const text of searches) {
        await page.locator('input[type=search]').fill('')
        await settled(() => page.locator('input[type=search]').pressSequentially(text, { delay: 60 }))
        await page.waitForTimeout(400)
      }
      await page.locator('tbody tr').first().waitFor()
      for (let turn = 0; turn < pages; turn += 1)
        await settled(() => page.getByRole('button', { name: 'More' }).click())
      const cpu = (cpuSeconds(pids) - before) * 1_000
      const tasks = /** @type {number[]} */ (await page.evaluate('tasks'))
      const answers = /** @type {number[]} */ (
        await page.evaluate(`performance.getEntriesByType('resource')
  .filter(({ name }) => name.includes('/admin/v1/users?')).map(({ requestStart, responseEnd }) => responseEnd - requestStart)`)
      ).sort((a, b) => a - b)
      const at = share => answers[Math.round((answers.length - 1) * share)] ?? Number.NaN
      expect(
        `${users} users: half of the searches and pages are answered within ${most.answer} ms`,
        at(0.5) < most.answer,
        `${at(0.5).toFixed(0)} ms; 9 of 10 within ${at(0.9).toFixed(0)}, of ${answers.length}`,
      )
      expect(
        `${users} users: the tab takes less than ${most.shown} ms of a processor for each`,
        cpu / answers.length < most.shown,
        `${(cpu / answers.length).toFixed(0)} ms; ${tasks.length} tasks above 50 ms by the clock, the longest ${Math.max(0, ...tasks).toFixed(0)} ms`,
      )
      say(`the page has ${await page.locator('tbody tr').count()} users at a time`)
    })
  } finally {
    await tab?.close()
    await stage.stop()
  }
}
