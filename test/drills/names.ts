// Under load, a real name server (dnsmasq) returns changing addresses for a target. In other cases, the name server
// returns an error or no response.
import { setTimeout as sleep } from 'node:timers/promises'
import { type NameServer, startOwnNameServer } from '../support/name-server.ts'
import { type AddressService, listenAtAddresses } from './listen-at-addresses.ts'
import { startLoad } from './load.ts'
import { setting } from './settings.ts'
import { startStage } from './stage.ts'
import { post } from './subjects.ts'
import type { Watch } from './watch.ts'

const perSecond = 300
const seconds = setting('NAMES_SECONDS', 60, 10)
const [first, second, third] = ['127.0.12.1', '127.0.12.2', '127.0.12.3'] as const

export async function names(watch: Watch): Promise<void> {
  const service = await listenAtAddresses([first, second, third])
  try {
    await changes(watch, service)
    await hung(watch, service)
  } finally {
    service.close()
  }
}

async function changes(watch: Watch, service: AddressService): Promise<void> {
  const { say, expect } = watch
  const names = await startOwnNameServer()
  await names.setAddresses('app.test', [first])
  const stage = await startStage({
    upstreams: 0,
    targets: [`http://app.test:${service.port}`],
    // Later, the name has 300 addresses, but only one of them has a server. Without health checks, a request that tries
    // two of the other addresses would get a 502.
    upstream: ', resolve: { every: 1s }, health: { path: /, interval: 1s }',
    before: names.command,
  })
  const { port } = stage.gateway
  try {
    const load = startLoad(port, { perSecond })
    await sleep(2_000)
    const took = async (to: readonly string[], isUsed: (seen: ReadonlySet<string>) => boolean) => {
      service.forget()
      const begun = performance.now()
      await names.setAddresses('app.test', to)
      while (!isUsed(new Set(service.arrivals()))) {
        if (performance.now() - begun > 20_000) return Number.POSITIVE_INFINITY
        await sleep(10)
        if (performance.now() - begun > 300) service.forget()
        await sleep(100)
      }
      return performance.now() - begun
    }
    const exactly = (addresses: readonly string[]) =>
      took(addresses, seen => seen.size === addresses.length && addresses.every(one => seen.has(one)))
    const times = {
      'added address': await exactly([first, second]),
      'removed address': await exactly([second]),
      'replaced addresses': await exactly([third]),
      '300 addresses with 32 in use': await took(many(), seen => seen.has(first)),
      'single address again': await exactly([first]),
    }
    for (const [what, ms] of Object.entries(times))
      expect(`${what}: in effect within 2.5 s`, ms < 2_500, `${(ms / 1_000).toFixed(2)} s`)
    await names.setAddresses('app.test', [])
    await sleep(5_000)
    await names.setAddresses('app.test', [first])
    await names.fail(5_000)
    await sleep(2_000)
    const { p99, worst } = await load.stop()
    expect(
      'no request fails during the changes',
      load.failures.length === 0,
      `${load.failures.length} of ${load.done + load.failures.length}: ${[...new Set(load.failures)]}`,
    )
    say(`p99 ${p99.toFixed(1)} ms, maximum ${worst.toFixed(0)} ms`)
    await gone(watch, { names, service, gateway: port })
  } finally {
    await stage.stop()
    await names.stop()
  }
}

/** Returns 300 addresses. The service listens only at the last address. */
function many(): string[] {
  const silent = Array.from({ length: 299 }, (_, at) => `127.1.${Math.floor(at / 200)}.${(at % 200) + 1}`)
  return [...silent, first]
}

/**
 * Checks what happens when a name is missing for a long time. The gateway keeps the last known addresses for 30 times
 * `every`, which is 30 s here. The name is missing for longer than that.
 */
async function gone(
  { expect }: Watch,
  { names, service, gateway }: { names: NameServer; service: AddressService; gateway: number },
): Promise<void> {
  const get = async () => (await fetch(`http://127.0.0.1:${gateway}/public/small`)).status
  await names.setAddresses('app.test', [])
  const begun = performance.now()
  let last = 0
  while (performance.now() - begun < 40_000) {
    if ((await get()) === 200) last = performance.now() - begun
    await sleep(50)
  }
  service.forget()
  const statuses = new Set<number>()
  for (let count = 0; count < 20; count += 1) statuses.add(await get())
  expect(
    'the addresses of a removed name are used for 30 s',
    last > 28_000 && last < 35_000 && service.arrivals().length === 0 && [...statuses].join() === '503',
    `last 200 after ${(last / 1_000).toFixed(1)} s, then ${[...statuses]}`,
  )
}

/** Checks that requests and logins do not wait while the lookups of three names hang. */
async function hung({ say, expect }: Watch, service: AddressService): Promise<void> {
  const silent = ['one', 'two', 'three']
  const names = await startOwnNameServer({
    silent: silent.map(name => `${name}.test`),
    resolver: 'timeout:5',
  })
  await names.setAddresses('four.test', [first])
  const start = (others: readonly string[]) =>
    startStage({
      upstreams: 0,
      targets: [`http://four.test:${service.port}`],
      upstream: ', resolve: { every: 1s }',
      before: names.command,
      others: Object.fromEntries(
        others.map(name => [
          name,
          `{ targets: ['http://${name}.test:${service.port}'], resolve: { every: 1s } }`,
        ]),
      ),
    })
  const calm = await start([])
  const stage = await start(silent)
  try {
    const before = await measure(calm.gateway.port)
    const during = await measure(stage.gateway.port)
    expect(
      'no request fails while lookups hang',
      during.failures.length === 0,
      `${during.failures.length} of ${during.done}`,
    )
    expect(
      'logins take at most 1.3 times as long while lookups hang (medians)',
      during.login <= before.login * 1.3,
      `${during.login.toFixed(1)} ms, ${before.login.toFixed(1)} ms without`,
    )
    say(
      `requests while lookups hang: p50 ${during.p50.toFixed(2)} ms, p99 ${during.p99.toFixed(1)} ms; without: ${before.p50.toFixed(2)} ms and ${before.p99.toFixed(1)} ms`,
    )
    const begun = performance.now()
    await names.setAddresses('four.test', [second])
    service.forget()
    while (!service.arrivals().includes(second) && performance.now() - begun < 60_000) {
      await fetch(`http://127.0.0.1:${stage.gateway.port}/public/small`)
      await sleep(50)
    }
    say(`a change of a fourth name takes effect after ${((performance.now() - begun) / 1_000).toFixed(1)} s`)
  } finally {
    await stage.stop()
    await calm.stop()
    await names.stop()
  }
}

let accounts = 0

async function measure(gateway: number) {
  const load = startLoad(gateway, { perSecond })
  const begun = performance.now()
  accounts += 1
  const account = {
    email: `names-${process.pid}-${accounts}@example.com`,
    password: 'a long enough password',
  }
  await post(gateway, 'register', account)
  const logins: number[] = []
  const failures: string[] = []
  while (performance.now() - begun < seconds * 1_000) {
    const at = performance.now()
    const { status } = await post(gateway, 'login', account)
    if (status !== 200) failures.push(`login ${status}`)
    logins.push(performance.now() - at)
    await sleep(250)
  }
  const { p50, p99 } = await load.stop()
  return {
    p50,
    p99,
    done: load.done,
    failures: [...load.failures, ...failures],
    login: logins.toSorted((a, b) => a - b)[Math.floor(logins.length / 2)] ?? 0,
  }
}
