// A Postgres of the drill's own, which can be stopped at once, started again where it was, paused and filled up.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { processTree } from '../costs.mjs'
import { findPostgres } from '../programs.mjs'
import { startPostgres } from '../services.mjs'

/** @param {readonly string[]} [settings] `name=value` */
export async function startOwnPostgres(settings = []) {
  const bin = findPostgres()
  if (bin === undefined) throw new Error('this drill needs the programs postgres and initdb on the machine')
  const server = await startPostgres(bin, settings)
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

/** @param {number} pid */
function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
