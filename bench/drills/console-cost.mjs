// What an open console costs the clients: CPU per request with the overview open, and with another gateway's, in pairs.
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds } from '../costs.mjs'
import { startLoad } from '../rounds.mjs'
import { openConsole } from './console-tab.mjs'
import { adminToken, openStage } from './replicas.mjs'
import { setting } from './settings.mjs'

const pairs = setting('CONSOLE_PAIRS', 20, 3)
/** Milliseconds of a half of a pair: two rounds of what the page asks for. */
const time = 20_000
/** Of CPU per request, in the median. */
const mostMore = 0.01

/** @param {number} upstream its port @param {import('./main.mjs').Watch} watch */
export async function costOfOpenConsole(upstream, { say, expect }) {
  if (pairs === 0) return
  const stages = [await openStage(), await openStage()]
  const load = startLoad()
  const tabs = []
  try {
    const gateways = []
    for (const stage of stages) gateways.push(await stage.start({ routing: routing(upstream) }))
    for (const { admin } of gateways) tabs.push(await openConsole(admin, adminToken))
    const [{ port, pids }] = gateways
    const questions = [{ path: '/public/small', headers: {} }]
    const ask = slice => load.run({ port, pids, questions, status: 200, connections: 16, ...slice })
    // A browser takes processor and caches from its neighbours, whatever it shows: one is open all the time.
    const open = async own => {
      await tabs[own ? 1 : 0].leave()
      await tabs[own ? 0 : 1].comeBack()
    }
    const measure = async own => {
      await open(own)
      const { cpu, requests } = await ask({ warmUp: 3_000, time })
      return { perRequest: cpu / requests, perSecond: (requests * 1_000) / time }
    }
    await ask({ warmUp: 0, time: 5_000 })
    const more = []
    const rates = []
    for (let pair = 0; pair < pairs; pair += 1) {
      // Each in the first place as often as in the second: what goes on beside it falls on both.
      const order = pair % 2 === 0 ? [false, true] : [true, false]
      const measured = new Map()
      for (const own of order) measured.set(own, await measure(own))
      more.push(measured.get(true).perRequest / measured.get(false).perRequest - 1)
      rates.push(measured.get(true).perSecond)
    }
    const at = (values, share) =>
      values.toSorted((a, b) => a - b)[Math.round((values.length - 1) * share)] ?? Number.NaN
    const percent = share => `${(at(more, share) * 100).toFixed(2)} %`
    expect(
      'CPU per request of clients is at most 1 % more with the console open, in the median of pairs',
      at(more, 0.5) <= mostMore,
      `${percent(0.5)}; half of ${pairs} pairs from ${percent(0.25)} to ${percent(0.75)}, at ${at(rates, 0.5).toFixed(0)} requests/s`,
    )
    const idle = async own => {
      await open(own)
      await sleep(5_000)
      const before = cpuSeconds(pids)
      await sleep(30_000)
      return ((cpuSeconds(pids) - before) * 1_000) / 30
    }
    const without = await idle(false)
    say(
      `without a load ${(await idle(true)).toFixed(2)} ms of CPU a second with the console open, ${without.toFixed(2)} without`,
    )
  } finally {
    for (const tab of tabs) await tab.close()
    await load.stop()
    for (const stage of stages) await stage.stop()
  }
}

function routing(port) {
  return `upstreams: { service: { targets: ['http://127.0.0.1:${port}'], connections_per_client: 128 } }
routes: [{ path: /public/*, upstream: service, auth: none }]`
}
