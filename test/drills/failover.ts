// One of two targets is killed under a load of GETs. No request fails, and the target is used again when it is back.
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunningProgram } from '../support/processes.ts'
import { startLoad } from './load.ts'
import { askJson, startStage, startUpstream } from './stage.ts'
import type { Watch } from './watch.ts'

export async function failover({ say, expect }: Watch): Promise<void> {
  const [first, second] = [await startUpstream(), await startUpstream()]
  const stage = await startStage({
    upstreams: 0,
    targets: [first, second].map(({ port }) => `http://127.0.0.1:${port}`),
    upstream:
      ', health: { path: /state, interval: 500ms, timeout: 300ms, unhealthy_after: 2, healthy_after: 1 }',
  })
  const servedBy = async (port: number) => (await askJson<{ served: number }>(port, '/state')).served
  let again: RunningProgram | undefined
  try {
    const load = startLoad(stage.gateway.port, { perSecond: 500 })
    await sleep(3_000)
    const shares = [await servedBy(first.port), await servedBy(second.port)]
    expect(
      'both targets are used',
      shares.every(served => served > 500),
      shares.join(' and '),
    )
    process.kill(first.pid, 'SIGKILL')
    say(`one target was killed after ${load.done} responses`)
    await sleep(4_000)
    const whileAway = load.failures.length
    again = await startUpstream(first.port)
    const back = performance.now()
    let served = 0
    while (served === 0 && performance.now() - back < 10_000) {
      await sleep(50)
      served = await servedBy(first.port)
    }
    const seconds = (performance.now() - back) / 1000
    await sleep(2_000)
    const { p99, worst } = await load.stop()
    say(`${load.done} responses, p99 ${p99.toFixed(1)} ms, maximum ${worst.toFixed(1)} ms`)
    const kinds = [...new Set(load.failures)].join(' ')
    expect(
      'no GET fails',
      load.failures.length === 0,
      `${load.failures.length} failed, ${whileAway} of them during the outage ${kinds}`,
    )
    expect('the target is used again within 5 s', served > 0 && seconds < 5, `${seconds.toFixed(2)} s`)
  } finally {
    await stage.stop()
    await Promise.all([first, second, again].map(upstream => upstream?.stop()))
  }
}
