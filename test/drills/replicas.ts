// Starts replicas of the gateway. They share Redis and a Postgres database that only this drill uses.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { cli, type RunningProgram, run, startProgram, temporaryFolder } from '../support/processes.ts'
import { findStores, onServer } from '../support/stores.ts'

export const adminToken = 'the-token-of-a-drill'

export interface Replica extends RunningProgram {
  /** The port of the admin listener. */
  readonly admin: number
}

export interface Setting {
  /** YAML to add to the section `server`. */
  readonly server?: string
  /** Additional sections as YAML. */
  readonly settings?: string
  /** Upstreams and routes as YAML. */
  readonly routing?: string
  readonly env?: Readonly<Record<string, string>>
  /** The URL of a relay. If it is set, the replica connects to the database through this relay. */
  readonly through?: string
  /** The URL for `storage.postgres_listen`. */
  readonly listen?: string
  /** The program to run; by default the built program. */
  readonly program?: string
  /** A command that runs the program, for example `unshare`. */
  readonly before?: readonly string[]
}

export interface ReplicaStage {
  /** The URL of the database. */
  readonly url: string
  readonly database: pg.Pool
  readonly folder: string
  /** The path of gateway.yaml. `migrate` and `start` rewrite this file. */
  readonly file: string
  /** Runs the migrations. This rewrites gateway.yaml, which running replicas then reload. */
  migrate(setting?: Setting): Promise<void>
  start(setting?: Setting): Promise<Replica>
  stop(): Promise<void>
}

/** The value of `storage.redis`: a URL, or the nodes of a Cluster or Sentinels. */
export type RedisAddress = string | Readonly<Record<string, unknown>>

interface Pair extends Pick<ReplicaStage, 'database' | 'file' | 'stop'> {
  readonly replicas: [Replica, Replica]
}

/**
 * Starts two replicas.
 * @param listenThrough a function that gets the URL of the database and returns the URL for `postgres_listen`
 */
export async function startReplicas({
  listenThrough = async () => '',
  ...setting
}: Omit<Setting, 'through' | 'listen'> & {
  listenThrough?: (url: string) => Promise<string>
} = {}): Promise<Pair> {
  const stage = await openStage()
  try {
    const listen = await listenThrough(stage.url)
    const replicas: Pair['replicas'] = [
      await stage.start({ ...setting, listen }),
      await stage.start({ ...setting, listen }),
    ]
    return { database: stage.database, replicas, file: stage.file, stop: stage.stop }
  } catch (error) {
    await stage.stop()
    throw error
  }
}

/**
 * Creates the database, but starts no replica yet.
 * @param servers the servers to use; by default, the servers that `findStores` returns. If the drill fails over to
 *   another Postgres server, `standby` is the URL of this server.
 */
export async function openStage({
  postgres: ownPostgres,
  standby,
  redis: ownRedis,
}: {
  postgres?: string
  standby?: string
  redis?: RedisAddress
} = {}): Promise<ReplicaStage> {
  const postgres = ownPostgres ?? (await findStores()).postgres
  const redis = ownRedis ?? (await findStores()).redis
  const name = `peage_drill_${randomBytes(6).toString('hex')}`
  await onServer(postgres, `create database ${name}`)
  const folder = temporaryFolder()
  const url = urlOf(postgres, name)
  const database = new pg.Pool({ connectionString: url, max: 2 })
  database.on('error', () => {})

  const started: Replica[] = []
  const file = join(folder.path, 'gateway.yaml')

  function write({
    server = '',
    settings = '',
    routing = 'upstreams: {}\nroutes: []',
    through = url,
    listen = '',
  }: Setting): void {
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
    file,
    async migrate(setting = {}) {
      write(setting)
      await run(process.execPath, [cli, 'migrate', '-c', file])
    },
    async start({ env = {}, program = cli, before = [], ...setting } = {}) {
      write(setting)
      const running = await startProgram(program, ['start', '-c', file], env, before)
      const replica = { ...running, admin: running.ports[1] ?? 0 }
      started.push(replica)
      return replica
    },
    async stop() {
      await Promise.all(started.map(replica => replica.stop()))
      await database.end()
      await onServer(standby ?? postgres, `drop database ${name} with (force)`)
      await folder.remove()
    },
  }
}

function urlOf(postgres: string, name: string): string {
  const url = new URL(postgres)
  url.pathname = `/${name}`
  return url.href
}
