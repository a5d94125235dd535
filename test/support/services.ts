// Provides the Postgres and Redis of the run to test suites. A suite is skipped if a server or program is missing.
import { Redis } from 'ioredis'
import { describe, inject } from 'vitest'

/** With `TEST_FULL_MATRIX=1`, all suites run on every set-up, and long tests run with all cases and repetitions. */
export const isFullMatrix = process.env.TEST_FULL_MATRIX === '1'

/** Returns all cases in a full matrix, and otherwise only the first case. Use it if one case takes seconds. */
export function firstOrAll<T>(cases: readonly T[]): readonly T[] {
  return isFullMatrix ? cases : cases.slice(0, 1)
}

/**
 * The value of `storage.pool` in test gateways. The pool is small, because a gateway opens all connections when it
 * starts.
 */
export const poolSize = 4

/** Declares a suite that needs the Postgres and Redis servers of the run. */
export function describeWithServices(title: string, suite: () => void): void {
  const missing = inject('postgresUrl') === '' ? 'Postgres (TEST_DATABASE_URL)' : 'Redis (TEST_REDIS_URL)'
  describeWhere(areServicesThere() ? 'there' : '', `no ${missing}`, title, suite)
}

export function areServicesThere(): boolean {
  return inject('postgresUrl') !== '' && inject('redisUrl') !== ''
}

/** Declares a suite that stops and kills its own Postgres servers (see `startPostgres`). */
export function describeWithPostgresBinary(title: string, suite: () => void): void {
  describeWhere(inject('postgresBin'), 'no postgres binary', title, suite)
}

/** Declares a suite that stops and kills its own Redis servers (see `startRedis`). */
export function describeWithRedisBinary(title: string, suite: () => void): void {
  describeWhere(inject('redisBin'), 'no redis-server binary', title, suite)
}

/** Declares a suite that runs its own nginx behind the gateway (see `startNginx`). */
export function describeWithNginx(title: string, suite: () => void): void {
  describeWhere(inject('nginxBin'), 'no nginx binary', title, suite)
}

/** Declares a suite that runs its own Caddy in front of the gateway and a service (see `startCaddy`). */
export function describeWithCaddy(title: string, suite: () => void): void {
  describeWhere(inject('caddyBin'), 'no caddy binary', title, suite)
}

/** Declares a suite that checks metrics with promtool. */
export function describeWithPromtool(title: string, suite: () => void): void {
  describeWhere(inject('promtoolBin'), 'no promtool binary', title, suite)
}

/** Declares a suite that uses a browser (see `startBrowser`). */
export function describeWithChromium(title: string, suite: (bin: string) => void): void {
  describeWhere(inject('chromiumBin'), 'no chromium binary', title, () => suite(inject('chromiumBin')))
}

/** Declares a suite that starts a name server for its programs (see `startNameServer`). */
export function describeWithNameServer(title: string, suite: () => void): void {
  describeWhere(inject('nameServerBin'), 'no dnsmasq, or not root', title, suite)
}

/** Returns the URL of the run's Postgres server. Tests create their own databases on it (see databases.ts). */
export function postgresUrl(): string {
  return inject('postgresUrl')
}

/**
 * Empties a database of the run's Redis server and returns its URL. Each worker has its own database, and runs its test
 * files one after the other, so no other test uses the database.
 */
export async function emptyRedisUrl(): Promise<string> {
  const url = new URL(inject('redisUrl'))
  url.pathname = `/${Number(process.env.VITEST_POOL_ID ?? 1) % 16}`
  const redis = new Redis(url.href)
  await redis.flushdb()
  redis.disconnect()
  return url.href
}

/** Declares a suite that may be skipped. Prints the name of a skipped suite, because some reporters do not. */
function describeWhere(there: string, missing: string, title: string, suite: () => void): void {
  if (there === '') console.warn(`skipped: ${title}: ${missing}`)
  describe.skipIf(there === '')(there === '' ? `${title}: ${missing}` : title, suite)
}
