// Starts Redis servers for a drill: a single server, a primary with replicas and Sentinels, or a Cluster.
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { atEnd } from '../support/cleanup.ts'
import type { RedisRole, Server } from '../support/servers.ts'
import { startOwnRedis } from '../support/stores.ts'
import type { RedisAddress } from './replicas.ts'

/** A Redis server. After a kill and a restart, it contains only the data of the last `SAVE`. */
export interface Node extends Server {
  readonly host: string
  /** A client that is connected directly to this server. */
  readonly raw: Redis
  /** Makes the node a replica of `primary`. Resolves when the node has all data of the primary. */
  follow(primary: Node): Promise<void>
  lead(): Promise<unknown>
}

/** @param flags additional command-line flags of the Redis server */
export async function startNode(as: RedisRole = 'server', flags: readonly string[] = []): Promise<Node> {
  const server = await startOwnRedis(as, flags)
  const raw = new Redis(server.port, '127.0.0.1', { retryStrategy: () => 100, maxRetriesPerRequest: null })
  raw.on('error', () => {})
  atEnd(() => raw.disconnect())
  return Object.assign(server, {
    host: `127.0.0.1:${server.port}`,
    raw,
    async follow(primary: Node) {
      await raw.replicaof('127.0.0.1', primary.port)
      await until(async () => (await raw.info('replication')).includes('master_link_status:up'))
    },
    lead: () => raw.replicaof('NO', 'ONE'),
  })
}

export interface Watched {
  readonly redis: RedisAddress
  /** Returns the node that the Sentinels name as primary. */
  named(): Promise<Node>
  /** Resolves when the Sentinels have promoted another node to replace `failed`. */
  failedOver(failed: Node): Promise<void>
  stop(): Promise<void>
}

/** Starts a primary, two replicas, and three Sentinels that fail over after a second of silence. */
export async function startWatched(): Promise<Watched> {
  const first = await startNode()
  const nodes = [first, await startNode(), await startNode()]
  for (const other of nodes.slice(1)) await other.follow(first)
  const sentinel = await startSentinel(first)
  const sentinels = [sentinel, await startSentinel(first), await startSentinel(first)]
  const named = async () => {
    const [, port] = (await sentinel.raw.call('sentinel', 'get-master-addr-by-name', 'drill')) as string[]
    return nodes.find(node => node.port === Number(port)) ?? first
  }
  await until(async () => {
    const [known = []] = (await sentinel.raw.call('sentinel', 'masters')) as string[][]
    const field = (name: string) => known[known.indexOf(name) + 1]
    return field('num-other-sentinels') === '2' && field('num-slaves') === '2'
  })
  return {
    redis: { sentinels: sentinels.map(({ host }) => host), name: 'drill' },
    named,
    failedOver: failed =>
      until(async () => {
        const now = await named()
        return now !== failed && (await isPrimary(now))
      }),
    async stop() {
      for (const node of [...sentinels, ...nodes]) await node.stop()
    },
  }
}

async function startSentinel(primary: Node): Promise<Node> {
  const sentinel = await startNode('sentinel')
  const tell = (words: string) => sentinel.raw.call('sentinel', ...words.split(' '))
  await tell(`monitor drill 127.0.0.1 ${primary.port} 2`)
  await tell('set drill down-after-milliseconds 1000')
  await tell('set drill failover-timeout 3000')
  return sentinel
}

export interface Cluster {
  readonly redis: RedisAddress
  /** A primary with a replica. */
  readonly first: Node
  /** A primary without a replica. */
  readonly second: Node
  /** Resolves when all running nodes report that the Cluster serves all slots. */
  whole(): Promise<void>
  /** Resolves when the replica has replaced the first primary. */
  replaced(): Promise<void>
  stop(): Promise<void>
}

/** Starts three primaries, and a replica of the first one. A node counts as failed after a second of silence. */
export async function startCluster(): Promise<Cluster> {
  const start = () => startNode('cluster', ['--cluster-node-timeout', '1000'])
  const [first, second, third, replica] = [await start(), await start(), await start(), await start()]
  const primaries = [first, second, third]
  const nodes = [...primaries, replica]
  const [, bus = ''] = (await first.raw.config('GET', 'cluster-port')) as string[]
  for (const node of nodes) await node.raw.call('cluster', 'meet', '127.0.0.1', String(first.port), bus)
  const slots = 16_384
  for (const [at, node] of primaries.entries()) {
    const [from, to] = [Math.floor((at * slots) / 3), Math.floor(((at + 1) * slots) / 3) - 1]
    await node.raw.call('cluster', 'addslotsrange', from, to)
  }
  const infoHas = async (node: Node, line: string) =>
    String(await node.raw.call('cluster', 'info')).includes(line)
  const isWhole = (node: Node) => infoHas(node, 'cluster_state:ok')
  for (const node of primaries)
    await until(async () => (await isWhole(node)) && (await infoHas(node, 'cluster_known_nodes:4')))
  const id = String(await first.raw.call('cluster', 'myid'))
  await until(() =>
    replica.raw.call('cluster', 'replicate', id).then(
      () => true,
      () => false,
    ),
  )
  await until(async () => (await replica.raw.info('replication')).includes('master_link_status:up'))
  return {
    redis: { cluster: primaries.map(({ host }) => host) },
    first,
    second,
    async whole() {
      for (const node of [third, replica]) await until(() => isWhole(node))
    },
    replaced: () => until(() => isPrimary(replica)),
    async stop() {
      for (const node of nodes) await node.stop()
    },
  }
}

async function isPrimary({ raw }: Node): Promise<boolean> {
  return (await raw.info('replication')).includes('role:master')
}

/** Waits until `isSo` resolves with `true`. Calls it every 20 ms. @throws Error after 30 s */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let waitedMs = 0; !(await isSo()); waitedMs += 20) {
    if (waitedMs > 30_000) throw new Error('a Redis server of the drill is not ready after 30 s')
    await sleep(20)
  }
}
