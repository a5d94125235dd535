// A target's name under load, asked of a real name server (dnsmasq): addresses come, go, are swapped and time out.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from '../cleanup.mjs'
import { temporaryFolder } from '../processes.mjs'
import { startLoad } from './load.mjs'
import { startStage } from './stage.mjs'

const perSecond = 300
const seconds = Number(process.env.NAMES_SECONDS ?? 60)
const addresses = ['127.0.12.1', '127.0.12.2', '127.0.12.3']

/** @type {import('./main.mjs').Drill} */
export async function names({ say, expect }) {
  const names = startNameServer()
  const servers = await startServers()
  const [first, second, third] = addresses
  const { port } = servers
  names.set('app.test', [first])
  for (const name of ['one.test', 'two.test', 'three.test', 'four.test']) names.set(name, [first])
  const stage = await startStage({
    upstreams: 0,
    targets: [`http://app.test:${port}`],
    // Of 300 addresses one is listened at: without checks, a request that meets two others in a row is answered 502.
    upstream: ', resolve: { every: 1s }, health: { path: /, interval: 1s }',
    before: names.command,
    settings: '',
    others: Object.fromEntries(
      ['one', 'two', 'three', 'four'].map(name => [
        name,
        `{ targets: ['http://${name}.test:${port}'], resolve: { every: 1s } }`,
      ]),
    ),
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
    const { p99, worst } = await load.stop()
    expect(
      'no request fails meanwhile',
      load.failures.length === 0,
      `${load.failures.length} of ${load.done + load.failures.length}: ${[...new Set(load.failures)]}`,
    )
    say(`p99 ${p99.toFixed(1)} ms, slowest ${worst.toFixed(0)} ms`)
    await hung({ say, expect, names, gateway })
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

/** The name server answers nothing any more: look-ups hang, and requests and logins must not notice. */
async function hung({ say, expect, names, gateway }) {
  const before = await measure(gateway)
  names.pause()
  await sleep(2_000)
  const during = await measure(gateway)
  names.resume()
  expect(
    'no request fails while look-ups hang',
    during.failures.length === 0,
    `${during.failures.length} of ${during.done}`,
  )
  expect(
    'logins take as long while look-ups hang (medians, at most 1.3 times)',
    during.login <= before.login * 1.3,
    `${during.login.toFixed(1)} ms, ${before.login.toFixed(1)} before`,
  )
  say(
    `requests while look-ups hang: p50 ${during.p50.toFixed(2)} ms, p99 ${during.p99.toFixed(1)} ms; before ${before.p50.toFixed(2)} and ${before.p99.toFixed(1)} ms`,
  )
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
  while (performance.now() - begun < (seconds * 1_000) / 2) {
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

/** Port 53 and a mount namespace take root. */
function startNameServer() {
  const program = ['/usr/sbin/dnsmasq', '/usr/bin/dnsmasq', '/usr/local/sbin/dnsmasq'].find(existsSync)
  if (program === undefined) throw new Error('no dnsmasq: install dnsmasq-base')
  if (spawnSync('unshare', ['-m', 'true']).status !== 0)
    throw new Error('needs root, for port 53 and a mount namespace')
  const { path: folder, remove } = temporaryFolder()
  const hosts = join(folder, 'hosts')
  mkdirSync(hosts)
  const address = `127.78.${process.pid % 250}.1`
  const resolvConf = join(folder, 'resolv.conf')
  writeFileSync(resolvConf, `nameserver ${address}\noptions timeout:1 attempts:1\n`)
  const words = [
    '--keep-in-foreground',
    '--conf-file=/dev/null',
    '--no-resolv',
    '--no-hosts',
    '--no-negcache',
  ]
  words.push('--local=/#/', '--local-ttl=0', '--bind-interfaces', '--user=root', '--pid-file=')
  const child = spawn(program, [...words, `--listen-address=${address}`, `--hostsdir=${hosts}`], {
    stdio: 'ignore',
  })
  const stop = atEnd(() => {
    child.kill('SIGKILL')
    remove()
  })
  return {
    command: ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && exec "$@"', resolvConf],
    set(name, list) {
      writeFileSync(join(folder, name), list.map(one => `${one} ${name}\n`).join(''))
      renameSync(join(folder, name), join(hosts, name))
    },
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    stop,
  }
}
