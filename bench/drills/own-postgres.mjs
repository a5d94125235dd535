// A Postgres of the drill's own, which can be stopped at once, started again where it was, paused and filled up.
import { chownSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { processTree } from '../costs.mjs'
import { run, startServer, temporaryFolder } from '../processes.mjs'
import { findPostgres } from '../programs.mjs'
import { startPostgres, unprivilegedUser } from '../services.mjs'

/**
 * @param {readonly string[]} [settings] `name=value`
 * @param {{ path: string }} [folder] empty, omitted: a temporary one
 */
export async function startOwnPostgres(settings = [], folder = temporaryFolder()) {
  const bin = findPostgres()
  if (bin === undefined) throw new Error('this drill needs the programs postgres and initdb on the machine')
  const server = await startPostgres(bin, settings, folder)
  let { pid } = server
  // Each client has a process of its own.
  const signalAll = name => {
    for (const one of processTree(pid)) process.kill(one, name)
  }
  return {
    url: server.url,
    /** As a crash: its clients' connections break, nothing is written that was not. */
    async stopAtOnce() {
      process.kill(pid, 'SIGQUIT')
      while (isAlive(pid)) await sleep(20)
    },
    async startAgain() {
      pid = await server.start()
    },
    isAlive: () => isAlive(pid),
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    /** Takes all connections, those of others too. @returns gives them back */
    async fillUp() {
      const clients = []
      const join = async () => {
        const client = new pg.Client({ connectionString: server.url })
        client.on('error', () => {})
        await client.connect()
        clients.push(client)
      }
      await join()
      let isOver = false
      const filling = (async () => {
        while (!isOver) {
          const ours = clients.map(client => client.processID)
          await clients[0].query(
            `select pg_terminate_backend(pid) from pg_stat_activity
              where backend_type = 'client backend' and pid <> all($1::int[])`,
            [ours],
          )
          await join().catch(() => {})
        }
      })()
      return async () => {
        isOver = true
        await filling
        await Promise.all(clients.map(client => client.end()))
      }
    },
  }
}

/**
 * Another, which has all that the first one has acknowledged, and takes its place when it is promoted.
 * @param {{ url: string }} primary @param {string} address of the loopback network, where it has the primary's port
 * @returns its URL, and `promote`
 */
export async function startStandby(primary, address) {
  const bin = findPostgres() ?? ''
  const { port, hostname } = new URL(primary.url)
  const folder = temporaryFolder()
  const as = unprivilegedUser()
  if (as !== undefined) chownSync(folder.path, as.uid, as.gid)
  const data = join(folder.path, 'data')
  const copy = ['-h', hostname, '-p', port, '-U', 'postgres', '-D', data, '-R', '-X', 'stream', '-c', 'fast']
  // The programs on the search path may be links to some of them only.
  const all = dirname(realpathSync(join(bin, 'postgres')))
  await run(join(all, 'pg_basebackup'), copy, { cwd: folder.path, ...as })
  const words = [
    '-D',
    data,
    '-p',
    port,
    '-c',
    `listen_addresses=${address}`,
    '-c',
    'unix_socket_directories=',
  ]
  await startServer(join(bin, 'postgres'), words, {
    port: Number(port),
    cwd: folder.path,
    ...(as === undefined ? {} : { as }),
  })
  const url = new URL(primary.url)
  url.hostname = address
  const ask = async (server, sql) => {
    const client = new pg.Client({ connectionString: server })
    try {
      await client.connect()
      return (await client.query(sql)).rows
    } finally {
      await client.end().catch(() => {})
    }
  }
  for (let waited = 0; waited < 20_000; waited += 100) {
    const rows = await ask(primary.url, "select 1 from pg_stat_replication where state = 'streaming'")
    if (rows.length > 0) break
    await sleep(100)
  }
  // From now on nothing is acknowledged that it does not have.
  await ask(primary.url, "alter system set synchronous_standby_names = '*'")
  await ask(primary.url, 'select pg_reload_conf()')
  return { url: url.href, promote: () => ask(url.href, 'select pg_promote()') }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
