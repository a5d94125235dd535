// Searches and pages through 100,000 users in the console.
import type { Page } from 'playwright-core'
import { cpuSeconds } from '../support/process-stat.ts'
import { type ConsoleTab, openConsole } from './console-tab.ts'
import { adminToken, openStage } from './replicas.ts'
import type { Watch } from './watch.ts'

const users = 100_000
const searches = ['user1', 'user99', 'user12345', 'nobody', '777', 'user']
const pages = 20
/**
 * The limits in milliseconds. `answer` is for the median response time of requests for one page of the user list.
 * `shown` is for the CPU time that the tab uses to show one page of this list.
 */
const most = { answer: 100, shown: 100 }

export async function manyUsers(watch: Watch): Promise<void> {
  const stage = await openStage()
  let tab: ConsoleTab | undefined
  try {
    const gateway = await stage.start()
    await stage.database.query(
      `insert into users (email, password_hash) select 'user' || i || '@example.com', 'none' from generate_series(1, $1) i`,
      [users],
    )
    await stage.database.query('analyze users')
    tab = await openConsole(gateway.admin, adminToken)
    const pids = await tab.pids()
    await tab.looking(page => searchAndPage(page, pids, watch))
  } finally {
    await tab?.close()
    await stage.stop()
  }
}

async function searchAndPage(page: Page, pids: readonly number[], { say, expect }: Watch): Promise<void> {
  const firstRow = page.locator('tbody tr').first()
  const settled = (work: () => Promise<void>) =>
    Promise.all([page.waitForResponse(answer => answer.url().includes('/admin/v1/users?')), work()])
  await page.locator('nav a[href="#users"]').click()
  await firstRow.waitFor()
  await page.evaluate(`globalThis.tasks = []
new PerformanceObserver(list => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })`)
  const before = cpuSeconds(pids)
  const search = page.locator('input[type=search]')
  for (const text of searches) {
    await search.fill('')
    await settled(() => search.pressSequentially(text, { delay: 60 }))
    await page.waitForTimeout(400)
  }
  await firstRow.waitFor()
  for (let turn = 0; turn < pages; turn += 1)
    await settled(() => page.getByRole('button', { name: 'Next page' }).click())
  const cpu = (cpuSeconds(pids) - before) * 1_000
  const tasks = await page.evaluate<number[]>('tasks')
  const durations = await page.evaluate<number[]>(`performance.getEntriesByType('resource')
  .filter(({ name }) => name.includes('/admin/v1/users?')).map(({ requestStart, responseEnd }) => responseEnd - requestStart)`)
  const answers = durations.sort((a, b) => a - b)
  const at = (share: number) => answers[Math.round((answers.length - 1) * share)] ?? Number.NaN
  expect(
    `${users} users: the median response time of searches and pages is below ${most.answer} ms`,
    at(0.5) < most.answer,
    `${at(0.5).toFixed(0)} ms, p90 ${at(0.9).toFixed(0)} ms, ${answers.length} responses`,
  )
  expect(
    `${users} users: the tab uses less than ${most.shown} ms of CPU per page`,
    cpu / answers.length < most.shown,
    `${(cpu / answers.length).toFixed(0)} ms; ${tasks.length} tasks longer than 50 ms, the longest ${Math.max(0, ...tasks).toFixed(0)} ms`,
  )
  say(`the page shows ${await page.locator('tbody tr').count()} users at a time`)
}
