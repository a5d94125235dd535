// What drills of several replicas play on: the real program, over a Postgres database of the drill's own and Redis.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { run, startProgram, temporaryFolder } from '../processes.mjs'
import { findStores } from '../services.mjs'

const program = '../dist/cli.js'
export const adminToken = 'the-token-of-a-drill'

/**
 * @typedef {import('../processes.mjs').Running & { admin: number }} Replica
 * @typedef {object} Setting
 * @property {string} [server] YAML that is added to the `server` section
 * @property {string} [settings] YAML that is added to the configuration
 * @property {string} [routing] YAML of upstreams and routes
 * @property {Record<string, string>} [env]
 * @property {string} [through] the address of the database, where it is not reached directly
 * @property {string} [listen] the address to listen at
 * @property {string} [program] another than the one built here
 * @property {string[]} [before] a command that runs it, as `unshare` does
 */

/**
 * Two replicas.
 * @param {Omit<Setting, 'through' | 'listen'> & { listenThrough?: (url: string) => Promise<string> }} options
 *   the address to listen at, from the database's
 */
export async function startReplicas({ listenThrough = async () => '', ...setting } = {}) {
  const stage = await openStage()
  try {
    const listen = await listenThrough(stage.url)
    const replicas = []
    for (let i = 0; i < 2; i += 1) replicas.push(await stage.start({ ...setting, listen }))
    return { database: stage.database, replicas, file: stage.file, stop: stage.stop }
  } catch (error) {
    await stage.stop()
    throw error
  }
}

/**
 * The database, empty, with nobody on it yet.
 * @param {{ postgres?: string, standby?: string, redis?: string | object }} [servers] omitted: those of the environment,
 *   else found, else started; `standby` is where the database is in the end, if that is somewhere else
 */
export async function openStage({ postgres: ownPostgres, standby, redis: ownRedis } = {}) {
  const postgres = ownPostgres ?? (await findStores()).postgres
  const redis = ownRedis ?? (await findStores()).redis
  const name = `peage_drill_${randomBytes(6).toString('hex')}`
  await onServer(postgres, `create database ${name}`)
  const folder = temporaryFolder()
  const url = urlOf(postgres, name)
  const database = new pg.Pool({ connectionString: url, max: 2 })
  database.on('error', () => {})
  /** @type {Replica[]} */
  const started = []
  const file = join(folder.path, 'gateway.yaml')

  /** @param {Setting} setting */
  function write({
    server = '',
    settings = '',
    routing = 'upstreams: {}\nroutes: []',
    through = url,
    listen = '',
  } = {}) {
    writeFileSync(
      file,
      `server: { listen: '127.0.0.1:0', log: { requests: false }${server} }
admin: { listen: '127.0.0.1:0', token: ${adminToken} }
storage: { postgres: ${JSON.stringify(through)}, postgres_listen: ${JSON.stringify(listen)}, redis: ${JSON.stringify(redis)} }
${routing}
${settings}
`,
    )
  }

  return {
    url,
    database,
    folder: folder.path,
    /** The configuration, as it was last written. */
    file,
    /** @param {Setting} [setting] of replicas that serve already: they read the file too */
    async migrate(setting) {
      write(setting)
      await run(process.execPath, [
        fileURLToPath(new URL(`../${program}`, import.meta.url)),
        'migrate',
        '-c',
        file,
      ])
    },
    /** @param {Setting} setting @returns {Promise<Replica>} */
    async start({ env = {}, program: which = program, before = [], ...setting } = {}) {
      write(setting)
      const running = await startProgram(which, ['start', '-c', file], env, before)
      const replica = { ...running, admin: running.ports[1] ?? 0 }
      started.push(replica)
      return replica
    },
    async stop() {
      await Promise.all(started.map(replica => replica.stop()))
      await database.end()
      await onServer(standby ?? postgres, `drop database ${name} with (force)`)
      folder.remove()
    },
  }
}

function urlOf(postgres, name) {
  const url = new URL(postgres)
  url.pathname = `/${name}`
  return url.href
}

async function onServer(postgres, sql) {
  const client = new pg.Client({ connectionString: postgres })
  try {
    await client.connect()
    await client.query(sql)
  } catch (error) {
    throw new Error(`no answer from the Postgres at ${new URL(postgres).host}`, {
      cause: error,
    })
  } finally {
    await client.end().catch(() => {})
  }
}
