// Redis servers of a drill's own: alone, with a replica, watched by Sentinels, or as a Cluster. Each can be killed, paused and started again.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { atEnd } from '../cleanup.mjs'
import { freePort } from '../ports.mjs'
import { startServer, temporaryFolder } from '../processes.mjs'
import { findProgram } from '../programs.mjs'

/**
 * @typedef {Awaited<ReturnType<typeof startNode>>} Node
 * @param {readonly string[]} [words] beside the usual ones
 * @param {string} [file] a configuration that it may write to, as Sentinel does
 */
export async function startNode(words = [], file) {
  const program = findProgram('redis-server')
  if (program === undefined) throw new Error('this drill needs the program redis-server on the machine')
  const folder = temporaryFolder()
  const port = await freePort()
  const own = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder.path]
  if (file !== undefined) writeFileSync(join(folder.path, 'sentinel.conf'), file)
  const before = file === undefined ? [] : [join(folder.path, 'sentinel.conf'), '--sentinel']
  const inMemory = file === undefined ? ['--appendonly', 'no', '--save', ''] : []
  let running = await startServer(program, [...before, ...own, ...inMemory, ...words], { port })
  const raw = new Redis(port, '127.0.0.1', { retryStrategy: () => 100, maxRetriesPerRequest: null })
  raw.on('error', () => {})
  atEnd(() => raw.disconnect())
  const signal = name => process.kill(running.pids[0] ?? 0, name)
  return {
    port,
    host: `127.0.0.1:${port}`,
    /** Whoever is at its port now. */
    raw,
    /** Nothing of its memory stays but what `SAVE` wrote. */
    async kill() {
      signal('SIGKILL')
      await running.stop()
    },
    /** Where it was. */
    async startAgain() {
      running = await startServer(program, [...before, ...own, ...inMemory, ...words], { port })
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    /** @param {Node} primary */
    async follow(primary) {
      await raw.replicaof('127.0.0.1', primary.port)
      await until(async () => (await raw.info('replication')).includes('master_link_status:up'))
    },
    lead: () => raw.replicaof('NO', 'ONE'),
    async stop() {
      // One that stands still hears no request to end; one that was killed is gone.
      try {
        signal('SIGCONT')
      } catch {}
      await running.stop()
    },
  }
}

/** A primary, two replicas, and three Sentinels that fail over when it has been silent for a second. */
export async function startWatched() {
  const nodes = [await startNode(), await startNode(), await startNode()]
  const [first, ...others] = nodes
  for (const other of others) await other.follow(first)
  const sentinels = []
  for (let count = 0; count < 3; count += 1) {
    sentinels.push(
      await startNode(
        [],
        `sentinel monitor drill 127.0.0.1 ${first.port} 2
sentinel down-after-milliseconds drill 1000
sentinel failover-timeout drill 3000
`,
      ),
    )
  }
  const named = async () => {
    const [, port] = await sentinels[0].raw.call('sentinel', 'get-master-addr-by-name', 'drill')
    return nodes.find(node => node.port === Number(port)) ?? first
  }
  await until(async () => {
    const [known] = await sentinels[0].raw.call('sentinel', 'masters')
    const field = name => known[known.indexOf(name) + 1]
    return field('num-other-sentinels') === '2' && field('num-slaves') === '2'
  })
  return {
    redis: { sentinels: sentinels.map(({ host }) => host), name: 'drill' },
    named,
    /** @param {Node} failed until another is named, which says itself that it is the primary */
    async failedOver(failed) {
      await until(async () => {
        const now = await named()
        return now !== failed && (await now.raw.info('replication')).includes('role:master')
      })
    },
    async stop() {
      for (const node of [...sentinels, ...nodes]) await node.stop()
    },
  }
}

/** Three primaries, of which the first has a replica; a node counts as failed when it has been silent for a second. */
export async function startCluster() {
  const nodes = []
  for (let count = 0; count < 4; count += 1) {
    // The bus's usual port (10,000 up) may be above 65,535.
    const bus = String(await freePort())
    const words = ['--cluster-enabled', 'yes', '--cluster-port', bus, '--cluster-node-timeout', '1000']
    nodes.push({ ...(await startNode(words)), bus })
  }
  const [first, second, third, replica] = nodes
  for (const node of nodes) await node.raw.call('cluster', 'meet', '127.0.0.1', String(first.port), first.bus)
  const slots = 16_384
  for (const [at, node] of [first, second, third].entries()) {
    const [from, to] = [Math.floor((at * slots) / 3), Math.floor(((at + 1) * slots) / 3) - 1]
    await node.raw.call('cluster', 'addslotsrange', String(from), String(to))
  }
  const infoOf = node => node.raw.call('cluster', 'info')
  const isWhole = async node =>
    (await infoOf(node)).includes('cluster_state:ok') &&
    (await infoOf(node)).includes('cluster_known_nodes:4')
  for (const node of nodes.slice(0, 3)) await until(() => isWhole(node))
  const id = await first.raw.call('cluster', 'myid')
  await until(() =>
    replica.raw.call('cluster', 'replicate', id).then(
      () => true,
      () => false,
    ),
  )
  await until(async () => (await replica.raw.info('replication')).includes('master_link_status:up'))
  return {
    redis: { cluster: nodes.slice(0, 3).map(({ host }) => host) },
    first,
    second,
    /** Until all slots are served, as its other nodes see it. */
    async whole() {
      for (const node of [third, replica])
        await until(async () => (await infoOf(node)).includes('cluster_state:ok'))
    },
    /** Until the first primary's replica has taken its place. */
    replaced: () => until(async () => (await replica.raw.info('replication')).includes('role:master')),
    async stop() {
      for (const node of nodes) await node.stop()
    },
  }
}

/** @param {() => Promise<boolean>} isSo asked every 20 ms, for half a minute at most */
export async function until(isSo) {
  for (let waited = 0; !(await isSo()); waited += 20) {
    if (waited > 30_000) throw new Error('a Redis of the drill does not come to what it should')
    await sleep(20)
  }
}
