// If a name server answers late, the gateway starts or reloads without the addresses of the name.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createHistogram } from '../../../src/observability/metrics/histogram.ts'
import { createNameLookups } from '../../../src/upstream/targets/name-lookups.ts'
import type { OpenTarget } from '../../../src/upstream/targets/target.ts'
import { createUpstreams } from '../../../src/upstream/targets/upstreams.ts'
import { configOf } from '../../config/reading.ts'

/** A target that never responds to a health check. */
const server = createServer(() => {})
beforeAll(() => new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

it('addresses that the name server returns more than 2 s after the start count as unchecked', async () => {
  const { port } = server.address() as AddressInfo
  const { upstreams } = configOf(
    `upstreams: { app: { targets: ["http://app:${port}"], health: { path: /health, timeout: 10s } } }`,
  )
  const uncheckedAfter = async (ms: number) => {
    const targets: OpenTarget[] = []
    createUpstreams(upstreams, {
      lookups: createNameLookups(async () => {
        await new Promise(resolve => setTimeout(resolve, ms))
        return [{ address: '127.0.0.1', family: 4 }]
      }),
      durationsOf: () => createHistogram(),
      reuse: (_, open) => targets[targets.push(open()) - 1] as OpenTarget,
      eventsOf: () => ({ onLookup() {}, onTooMany() {} }),
    })
    const [target] = targets
    await expect.poll(() => target?.endpoints().length, { timeout: 5_000 }).toBe(1)
    const unchecked = target?.endpoints().map(endpoint => endpoint.isUnchecked())
    target?.quiesce()
    await target?.close()
    return unchecked
  }
  expect(await Promise.all([1_000, 2_500].map(uncheckedAfter))).toEqual([[false], [true]])
})
