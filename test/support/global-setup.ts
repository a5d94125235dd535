// Finds or starts the real Postgres, Redis, nginx, Chromium and other programs once per run.
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import type { TestProject } from 'vitest/node'
import { markProcesses } from './left-processes.ts'
import { findNameServer } from './name-server.ts'
import { reachable, unreached } from './reached.ts'
import { findPostgres, findProgram, type Server, startPostgres, startRedis } from './servers.ts'

declare module 'vitest' {
  /** The values that tests read with `inject`. A value is empty if its program or server is missing. */
  interface ProvidedContext {
    postgresUrl: string
    redisUrl: string
    /** The name prefix of the template databases. */
    patternPrefix: string
    /** The folder of `postgres` and `initdb`. */
    postgresBin: string
    /** The path of `redis-server`. */
    redisBin: string
    /** The path of `nginx`. */
    nginxBin: string
    /** The path of `caddy`. */
    caddyBin: string
    /** The path of `promtool`. */
    promtoolBin: string
    /** The path of `dnsmasq`. */
    nameServerBin: string
    /** The path of `chromium`. */
    chromiumBin: string
    /** The file for refusals and guard decisions that tests reach (see reached.ts). An empty path records nothing. */
    reachedFile: string
  }
}

/** Vitest calls this function before the first test file, and the returned function after the last test file. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const leftProcesses = markProcesses()
  const {
    TEST_DATABASE_URL = '',
    TEST_REDIS_URL = '',
    TEST_REQUIRE_SERVICES = '',
    TEST_EVERY_OUTCOME = '',
  } = process.env
  const postgresBin = findPostgres() ?? ''
  const redisBin = findProgram('redis-server') ?? ''
  const nginxBin = findProgram('nginx') ?? ''
  const caddyBin = findProgram('caddy') ?? ''
  const promtoolBin = findProgram('promtool') ?? ''
  const nameServerBin = findNameServer() ?? ''
  const chromiumBin = findProgram('chromium') ?? ''
  if (TEST_REQUIRE_SERVICES === '1') {
    if (TEST_DATABASE_URL === '' && postgresBin === '') throw new Error('TEST_REQUIRE_SERVICES: no Postgres')
    if (TEST_REDIS_URL === '' && redisBin === '') throw new Error('TEST_REQUIRE_SERVICES: no Redis')
    if (nginxBin === '') throw new Error('TEST_REQUIRE_SERVICES: no nginx')
    if (caddyBin === '') throw new Error('TEST_REQUIRE_SERVICES: no caddy')
    if (promtoolBin === '') throw new Error('TEST_REQUIRE_SERVICES: no promtool')
    if (nameServerBin === '') throw new Error('TEST_REQUIRE_SERVICES: no dnsmasq, or not root')
    if (chromiumBin === '') throw new Error('TEST_REQUIRE_SERVICES: no chromium')
  }
  const removeTemporaryFiles = keepTemporaryFilesInMemory()
  const started: Server[] = []
  const startedUrl = async (server: Promise<Server>) => {
    started.push(await server)
    return (await server).url
  }
  const urls = await Promise.allSettled([
    TEST_DATABASE_URL || (postgresBin && startedUrl(startPostgres(postgresBin))),
    TEST_REDIS_URL || (redisBin && startedUrl(startRedis(redisBin))),
  ])
  const patternPrefix = `peage_pattern_${randomBytes(4).toString('hex')}_`
  const reachedFile =
    TEST_EVERY_OUTCOME === '1' ? join(mkdtempSync(join(tmpdir(), 'peage-reached-')), 'list') : ''
  if (reachedFile !== '') writeFileSync(reachedFile, '')
  const stop = async () => {
    // Vitest waits at most ten seconds for this function, so the report is made before the clean-up.
    if (reachedFile !== '') tellReached(reachedFile)
    if (TEST_DATABASE_URL !== '') await dropDatabases(TEST_DATABASE_URL, patternPrefix)
    await Promise.all(started.map(server => server.stop()))
    removeTemporaryFiles()
    const left = await leftProcesses()
    if (left.length === 0) return
    console.error(`Tests left these processes running:\n${left.join('\n')}`)
    process.exitCode = 1
  }
  const failed = urls.find(url => url.status === 'rejected')
  if (failed !== undefined) {
    await stop()
    throw failed.reason
  }
  const [postgresUrl = '', redisUrl = ''] = urls.map(url => (url.status === 'fulfilled' ? url.value : ''))
  project.provide('postgresUrl', postgresUrl)
  project.provide('redisUrl', redisUrl)
  project.provide('patternPrefix', patternPrefix)
  project.provide('postgresBin', postgresBin)
  project.provide('redisBin', redisBin)
  project.provide('nginxBin', nginxBin)
  project.provide('caddyBin', caddyBin)
  project.provide('promtoolBin', promtoolBin)
  project.provide('nameServerBin', nameServerBin)
  project.provide('chromiumBin', chromiumBin)
  project.provide('reachedFile', reachedFile)
  return stop
}

/**
 * Keeps the temporary files of the run in memory, if `/dev/shm` has enough space. So the run takes less time. Also, a
 * disk that is slow for a second cannot make a statement exceed its time limit.
 * @returns a function that deletes the files
 */
function keepTemporaryFilesInMemory(): () => void {
  if (freeBytes('/dev/shm') < 4 * 2 ** 30) return () => {}
  const folder = mkdtempSync('/dev/shm/peage-test-')
  // Postgres does not run as root, but must be able to enter the folder.
  chmodSync(folder, 0o711)
  process.env.TMPDIR = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return 0
  }
}

/** Drops the template databases on a server that the run did not start. */
async function dropDatabases(url: string, prefix: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const like = 'select datname as name from pg_database where starts_with(datname, $1)'
    const { rows } = await client.query<{ name: string }>(like, [prefix])
    for (const { name } of rows) await client.query(`drop database ${name}`)
  } finally {
    await client.end()
  }
}

/** Makes the run fail if there is a refusal or guard decision that no test reached. Used only for the whole suite. */
function tellReached(file: string): void {
  const missing = unreached(file)
  rmSync(dirname(file), { recursive: true })
  const all = reachable().length
  console.log(`refusals and guards' decisions reached: ${all - missing.length} of ${all}`)
  if (missing.length === 0) return
  console.error(`No test reached these:\n${missing.join('\n')}`)
  process.exitCode = 1
}
