// What drills of several replicas play on: the real program twice, over a Postgres database of the drill's own and Redis.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { startProgram, temporaryFolder } from '../processes.mjs'

const postgres = process.env.DATABASE_URL ?? 'postgres://root@127.0.0.1:5432/postgres'
const redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
export const adminToken = 'the-token-of-a-drill'

/**
 * @typedef {import('../processes.mjs').Running & { admin: number }} Replica
 * @param {{ settings?: string, routing?: string, env?: Record<string, string>, listenThrough?: (url: string) => Promise<string> }} options
 *   YAML that is added to the configuration, and that of upstreams and routes; the address to listen at, from the database's
 */
export async function startReplicas({
  settings = '',
  routing = 'upstreams: {}\nroutes: []',
  env = {},
  listenThrough = async () => '',
} = {}) {
  const name = `peage_drill_${randomBytes(6).toString('hex')}`
  await onServer(`create database ${name}`)
  const folder = temporaryFolder()
  const database = new pg.Pool({ connectionString: urlOf(name), max: 2 })
  database.on('error', () => {})
  /** @type {Replica[]} */
  const replicas = []
  const stop = async () => {
    await Promise.all(replicas.map(replica => replica.stop()))
    await database.end()
    await onServer(`drop database ${name} with (force)`)
    folder.remove()
  }
  try {
    const file = join(folder.path, 'gateway.yaml')
    const listen = await listenThrough(urlOf(name))
    writeFileSync(
      file,
      `server: { listen: '127.0.0.1:0', log: { requests: false } }
admin: { listen: '127.0.0.1:0', token: ${adminToken} }
storage: { postgres: ${JSON.stringify(urlOf(name))}, postgres_listen: ${JSON.stringify(listen)}, redis: ${JSON.stringify(redis)} }
${routing}
${settings}
`,
    )
    for (let i = 0; i < 2; i += 1) {
      const running = await startProgram('../dist/cli.js', ['start', '-c', file], env)
      replicas.push({ ...running, admin: running.ports[1] ?? 0 })
    }
  } catch (error) {
    await stop()
    throw error
  }
  return { database, replicas, stop }
}

function urlOf(name) {
  const url = new URL(postgres)
  url.pathname = `/${name}`
  return url.href
}

async function onServer(sql) {
  const client = new pg.Client({ connectionString: postgres })
  try {
    await client.connect()
    await client.query(sql)
  } catch (error) {
    throw new Error(`this drill needs a Postgres: DATABASE_URL, or one at ${new URL(postgres).host}`, {
      cause: error,
    })
  } finally {
    await client.end().catch(() => {})
  }
}
