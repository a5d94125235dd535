// Compares the CPU time per request of a loaded gateway with and without an open console.
import { setTimeout as sleep } from 'node:timers/promises'
import { bodyLength } from '../../bench/contender.ts'
import { startLoad } from '../../bench/rounds.ts'
import { cpuSeconds } from '../support/process-stat.ts'
import { type ConsoleTab, openConsole } from './console-tab.ts'
import { adminToken, openStage } from './replicas.ts'
import { setting } from './settings.ts'
import { serviceAt } from './stage.ts'
import type { Watch } from './watch.ts'

const pairs = setting('CONSOLE_PAIRS', 20, 3)
/** The duration of one measurement in milliseconds. During a measurement, the page loads its figures twice. */
const time = 20_000
/**
 * The maximum share by which an open console may increase the CPU time per request. The drill compares this share with
 * the median of all pairs.
 */
const mostMore = 0.01

/** @param upstream the port of the upstream */
export async function costOfOpenConsole(upstream: number, { say, expect }: Watch): Promise<void> {
  if (pairs === 0) return
  const [stage, otherStage] = [await openStage(), await openStage()]
  const load = startLoad()
  const tabs: ConsoleTab[] = []
  try {
    const gateway = await stage.start({ routing: routing(upstream) })
    const other = await otherStage.start({ routing: routing(upstream) })
    const ownTab = await openConsole(gateway.admin, adminToken)
    tabs.push(ownTab)
    const otherTab = await openConsole(other.admin, adminToken)
    tabs.push(otherTab)
    const { port, pids } = gateway
    const questions = [{ path: '/public/small', headers: {} }]
    const ask = (slice: { warmUp: number; time: number }) =>
      load.run({
        port,
        pids: [...pids],
        questions,
        status: 200,
        length: bodyLength,
        connections: 16,
        ...slice,
      })
    // The browser itself slows down other processes. Both measurements must include this effect. So one console is
    // always open, either at the measured gateway or at the other gateway.
    const open = async (own: boolean) => {
      await (own ? otherTab : ownTab).leave()
      await (own ? ownTab : otherTab).comeBack()
    }
    const measure = async (own: boolean) => {
      await open(own)
      const { cpu, requests } = await ask({ warmUp: 3_000, time })
      return { perRequest: cpu / requests, perSecond: (requests * 1_000) / time }
    }
    await ask({ warmUp: 0, time: 5_000 })
    const more: number[] = []
    const rates: number[] = []
    for (let pair = 0; pair < pairs; pair += 1) {
      // The order of the two measurements alternates, so that other work on the machine affects both in the same way.
      const first = await measure(pair % 2 === 1)
      const second = await measure(pair % 2 === 0)
      const [without, within] = pair % 2 === 0 ? [first, second] : [second, first]
      more.push(within.perRequest / without.perRequest - 1)
      rates.push(within.perSecond)
    }
    const percent = (share: number) => `${(quantile(more, share) * 100).toFixed(2)} %`
    expect(
      'an open console raises the CPU per request by at most 1 % (median of pairs)',
      quantile(more, 0.5) <= mostMore,
      `${percent(0.5)}; quartiles ${percent(0.25)} and ${percent(0.75)} of ${pairs} pairs, at ${quantile(rates, 0.5).toFixed(0)} requests/s`,
    )
    const idle = async (own: boolean) => {
      await open(own)
      await sleep(5_000)
      const before = cpuSeconds(pids)
      await sleep(30_000)
      return (((cpuSeconds(pids) - before) * 1_000) / 30).toFixed(2)
    }
    const without = await idle(false)
    say(`CPU without load: ${await idle(true)} ms per second with the console open, ${without} ms without`)
  } finally {
    for (const tab of tabs) await tab.close()
    await load.stop()
    await stage.stop()
    await otherStage.stop()
  }
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.round((values.length - 1) * share)] ?? Number.NaN
}

function routing(port: number): string {
  return `${serviceAt(port)}
routes: [{ path: /public/*, upstream: service, auth: none }]`
}
