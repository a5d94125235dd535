// A target's name under load, asked of a real name server (dnsmasq): addresses come, go, are swapped and time out.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from './load.mjs'
import { startNameServer } from './name-server.mjs'
import { setting } from './settings.mjs'
import { startStage } from './stage.mjs'

const perSecond = 300
const seconds = setting('NAMES_SECONDS', 60, 10)
const addresses = ['127.0.12.1', '127.0.12.2', '127.0.12.3']

/** @type {import('./main.mjs').Drill} */
export async function names({ say, expect }) {
  const names = startNameServer()
  const servers = await startServers()
  const [first, second, third] = addresses
  const { port } = servers
  names.set('app.test', [first])
  const stage = await startStage({
    upstreams: 0,
    targets: [`http://app.test:${port}`],
    // Of 300 addresses one is listened at: without checks, a request that meets two others in a row is answered 502.
    upstream: ', resolve: { every: 1s }, health: { path: /, interval: 1s }',
    before: names.command,
    settings: '',
  })
  const [gateway = 0] = stage.gateway.ports
  try {
    const load = startLoad(gateway, { perSecond })
    await sleep(2_000)
    const took = async (to, wanted) => {
      servers.forget()
      const begun = performance.now()
      names.set('app.test', to)
      while (!wanted(servers.seen())) {
        if (performance.now() - begun > 20_000) return Number.POSITIVE_INFINITY
        await sleep(10)
        if (performance.now() - begun > 300) servers.forget()
        await sleep(100)
      }
      return performance.now() - begun
    }
    const exactly = wanted => seen =>
      seen.size === wanted.length && wanted.every(address => seen.has(address))
    const times = [
      ['an address added', await took([first, second], exactly([first, second]))],
      ['an address removed', await took([second], exactly([second]))],
      ['all swapped', await took([third], exactly([third]))],
      ['300 addresses, of which 32 are used', await took(many(), seen => seen.has(first))],
      ['one again', await took([first], exactly([first]))],
    ]
    for (const [what, ms] of times)
      expect(`${what}: used within 2.5 s`, ms < 2_500, `${(ms / 1_000).toFixed(2)} s`)
    names.set('app.test', [])
    await sleep(5_000)
    names.set('app.test', [first])
    await names.fail(5_000)
    await sleep(2_000)
    const { p99, worst } = await load.stop()
    expect(
      'no request fails meanwhile',
      load.failures.length === 0,
      `${load.failures.length} of ${load.done + load.failures.length}: ${[...new Set(load.failures)]}`,
    )
    say(`p99 ${p99.toFixed(1)} ms, slowest ${worst.toFixed(0)} ms`)
    await gone({ expect, names, servers, gateway })
    await stage.stop()
    await hung({ say, expect, servers })
  } finally {
    await stage.stop()
    servers.close()
    names.stop()
  }
}

/** Addresses that nobody listens at, but for one. */
function many() {
  return Array.from(
    { length: 299 },
    (_, index) => `127.1.${Math.floor(index / 200)}.${(index % 200) + 1}`,
  ).concat(addresses[0])
}

/** No such name for longer than the addresses are used on: 30 times `every`. */
async function gone({ expect, names, servers, gateway }) {
  const get = async () => (await fetch(`http://127.0.0.1:${gateway}/public/small`)).status
  names.set('app.test', [])
  const begun = performance.now()
  let last = 0
  while (performance.now() - begun < 40_000) {
    if ((await get()) === 200) last = performance.now() - begun
    await sleep(50)
  }
  servers.forget()
  const statuses = new Set()
  for (let count = 0; count < 20; count += 1) statuses.add(await get())
  expect(
    'of a name that is gone, addresses are used for 30 s, then no more',
    last > 28_000 && last < 35_000 && servers.seen().size === 0 && [...statuses].join() === '503',
    `last answer after ${(last / 1_000).toFixed(1)} s, then ${[...statuses]}`,
  )
}

/** Look-ups of three names hang: requests, logins and starts must not wait for them. */
async function hung({ say, expect, servers }) {
  const [first, second] = addresses
  const silent = ['one', 'two', 'three']
  const names = startNameServer({ silent: silent.map(name => `${name}.test`), resolverOptions: 'timeout:5' })
  names.set('four.test', [first])
  const upstream = name => `{ targets: ['http://${name}.test:${servers.port}'], resolve: { every: 1s } }`
  const calm = await startStage(stageOf({}))
  const stage = await startStage(stageOf(Object.fromEntries(silent.map(name => [name, upstream(name)]))))

  function stageOf(others) {
    return {
      upstreams: 0,
      targets: [`http://four.test:${servers.port}`],
      upstream: ', resolve: { every: 1s }',
      before: names.command,
      others,
    }
  }

  try {
    const before = await measure(calm.gateway.ports[0])
    const during = await measure(stage.gateway.ports[0])
    expect(
      'no request fails while look-ups hang',
      during.failures.length === 0,
      `${during.failures.length} of ${during.done}`,
    )
    expect(
      'logins take as long while look-ups hang (medians, at most 1.3 times)',
      during.login <= before.login * 1.3,
      `${during.login.toFixed(1)} ms, ${before.login.toFixed(1)} without`,
    )
    say(
      `requests while look-ups hang: p50 ${during.p50.toFixed(2)} ms, p99 ${during.p99.toFixed(1)} ms; without ${before.p50.toFixed(2)} and ${before.p99.toFixed(1)} ms`,
    )
    const begun = performance.now()
    names.set('four.test', [second])
    servers.forget()
    while (!servers.seen().has(second) && performance.now() - begun < 60_000) {
      await fetch(`http://127.0.0.1:${stage.gateway.ports[0]}/public/small`)
      await sleep(50)
    }
    say(`a fourth name's change is used ${((performance.now() - begun) / 1_000).toFixed(1)} s later`)
  } finally {
    await stage.stop()
    await calm.stop()
    names.stop()
  }
}

let accounts = 0

async function measure(gateway) {
  const load = startLoad(gateway, { perSecond })
  const begun = performance.now()
  accounts += 1
  const email = `names-${process.pid}-${accounts}@example.com`
  const post = (path, body) =>
    fetch(`http://127.0.0.1:${gateway}/api/v1/auth/${path}`, { method: 'POST', body: JSON.stringify(body) })
  await post('register', { email, password: 'a long enough password' })
  const logins = []
  while (performance.now() - begun < seconds * 1_000) {
    const at = performance.now()
    const { status } = await post('login', { email, password: 'a long enough password' })
    if (status !== 200) load.failures.push(`login ${status}`)
    logins.push(performance.now() - at)
    await sleep(250)
  }
  const { p50, p99 } = await load.stop()
  return {
    p50,
    p99,
    done: load.done,
    failures: load.failures,
    login: logins.toSorted((a, b) => a - b)[Math.floor(logins.length / 2)],
  }
}

/** One service on one port of each address; says which of them have been asked. */
async function startServers() {
  let seen = new Set()
  let port = 0
  const servers = []
  for (const address of addresses) {
    const server = createServer((_, response) => {
      seen.add(address)
      response.end(Buffer.alloc(1024, 'x'))
    })
    await new Promise(resolve => server.listen(port, address, resolve))
    port = server.address().port
    servers.push(server)
  }
  return {
    port,
    seen: () => seen,
    forget() {
      seen = new Set()
    },
    close() {
      for (const server of servers) server.closeAllConnections()
      for (const server of servers) server.close()
    },
  }
}
