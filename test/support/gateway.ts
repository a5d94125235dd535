// Starts a whole gateway from a gateway.yaml, in this process and with real sockets.
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { createConfigFile } from '../../src/config/config-file.ts'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import { loadSource } from '../../src/config/load-source.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { startServer } from '../../src/server/start-server.ts'
import type { Database, Prepared, Queryable } from '../../src/storage/database.ts'
import type { Storage } from '../../src/storage/open.ts'
import { openStorage } from '../../src/storage/open.ts'
import { lendDatabase } from './lent-database.ts'
import { noteDecisions } from './reached.ts'
import { poolSize } from './services.ts'

export interface Stores {
  /** The URL of Postgres; empty for the embedded database. */
  postgres: string
  /** The URL of Redis; empty to use no Redis. */
  redis: string
}

/** Replaces the first match of `from` with `to`. A test fails if `from` does not match. */
export type Edit = readonly [from: string | RegExp, to: string]

export const embedded: Stores = { postgres: '', redis: '' }

export interface TestGateway {
  readonly url: string
  readonly admin: string
  readonly adminToken: string
  /** The log lines of the gateway. */
  readonly log: string[]
  /** The statements that the gateway sent, except the heartbeats of the change feed. */
  readonly statements: string[]
  /** Runs a statement on the gateway's database. */
  sql<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
  /** The gateway's clock. To let time pass, increase `at` instead of sleeping. */
  readonly clock: { at: number; now(): number }
  readonly backing: Storage
  /** The path of the gateway.yaml. When the file changes, the gateway reloads it. */
  readonly file: string
  /** The error lines for configuration files that the gateway refused. */
  readonly refused: string[]
  /** Reloads the configuration as SIGHUP does. Resolves when the reload is done. */
  reload(): Promise<void>
  /**
   * Changes the configuration file and reloads it.
   * @returns a function that restores the file and reloads it
   */
  configure(...edits: readonly Edit[]): Promise<() => Promise<void>>
  stop(): Promise<void>
}

/**
 * @param yaml the part of gateway.yaml from `upstreams:` to the end
 * @param stores the databases that the gateway uses
 * @param settings texts that replace or extend parts of the default sections
 */
export async function startGateway(
  yaml: string,
  stores: Stores = embedded,
  settings: {
    auth?: string
    rateLimits?: string
    server?: string
    limits?: string
    admin?: string
    adminListen?: string
    drainTimeout?: string
    /** The time that the clock shows at the start, in milliseconds since the epoch. */
    at?: number
  } = {},
): Promise<TestGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'peage-test-'))
  const adminToken = 'a-token-for-operators-0123456789'
  const file = join(folder, 'gateway.yaml')
  await writeFile(
    file,
    `server: { listen: '127.0.0.1:0', drain_timeout: ${settings.drainTimeout ?? '2s'}${settings.server ?? ''} }
admin: { listen: '${settings.adminListen ?? '127.0.0.1:0'}'${settings.admin ?? `, token: ${adminToken}`} }
storage: { postgres: '${stores.postgres}', redis: '${stores.redis}', data_dir: /nowhere, pool: ${poolSize} }
auth: { ${settings.rateLimits ?? noRateLimits}${settings.auth ?? ''} }
limits: { ${settings.limits ?? 'free_daily: 1'} }
${yaml}`,
  )
  const source = { file, folder, env: {} }
  // The real program loads the configuration in a thread, which needs compiled code. Test gateways load the
  // configuration without a thread. Tests of the whole program cover the thread.
  const written = createConfigFile(source, {
    async loadInWorker(running) {
      const { read, digest } = loadSource({ ...running, maxWaitMs: 1_000 })
      return { ...read, digest }
    },
    pollIntervalMs: 50,
  })
  // This call records the content of the file. Otherwise, the gateway would reload the unchanged file after the start.
  written.load()
  const loaded = loadConfig({ file, env: {} })
  if ('problems' in loaded) throw new Error(loaded.problems.map(formatDiagnostic).join('\n'))

  const log: string[] = []
  const output = new Writable({
    write(chunk, _encoding, done) {
      log.push(String(chunk))
      done()
    },
  })
  const clock = { at: settings.at ?? Date.now(), now: () => clock.at }
  let backing: Storage | undefined
  const statements: string[] = []
  const refused: string[] = []
  const server = await startServer({
    config: loaded.config,
    clock,
    logger: await createLogger({ level: 'info', requests: true }, output),
    reloadSource: { file: written, onRefused: lines => refused.push(...lines) },
    open: async (config, dependencies) => {
      backing = await openStorage(config, dependencies, lendDatabase)
      return { ...backing, database: noting(backing.database, statements) }
    },
  })
  const opened = backing as unknown as Storage
  let isStopped = false
  return {
    url: server.address,
    admin: String(server.adminAddress),
    adminToken,
    log,
    clock,
    backing: opened,
    statements,
    file,
    refused,
    reload: server.reload,
    async configure(...edits) {
      const before = await readFile(file, 'utf8')
      const write = async (text: string) => {
        await replaceFile(file, text)
        await server.reload()
      }
      await write(edits.reduce(edited, before))
      return () => write(before)
    },
    sql: (text, values) => opened.database.query(text, values),
    async stop() {
      if (!isStopped) await noteDecisions(String(server.adminAddress), adminToken)
      isStopped = true
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function edited(text: string, [from, to]: Edit): string {
  let isFound = false
  const result = text.replace(from, () => {
    isFound = true
    return to
  })
  if (!isFound) throw new Error(`The configuration does not contain ${from}.`)
  return result
}

/** Renames a new file over the old one, as editors do. So no reload reads a half-written file. */
export async function replaceFile(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text)
  await rename(`${file}.new`, file)
}

/** Disables the rate limits, because hundreds of test requests come from one address. */
const noRateLimits =
  'rate_limits: { register: 0, login_failures: 0, login_failures_per_address: 0, refresh: 0, bad_keys: 0 }'

export function textOf(sql: string | Prepared): string {
  return typeof sql === 'string' ? sql : sql.text
}

function noting(database: Database, statements: string[]): Database {
  const notingOf = (queryable: Queryable): Queryable => ({
    query(sql, values) {
      const text = textOf(sql)
      if (!text.includes('pg_notify')) statements.push(text)
      return queryable.query(sql, values)
    },
  })
  return {
    ...database,
    ...notingOf(database),
    transaction: (work, options) => database.transaction(tx => work(notingOf(tx)), options),
  }
}
