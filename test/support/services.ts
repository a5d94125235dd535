// Real Postgres and Redis for tests: the addresses of the run's servers, and what is skipped where there are none.
import { Redis } from 'ioredis'
import { describe, inject } from 'vitest'

/** Everything in every set-up, and whole budgets: `TEST_FULL_MATRIX=1`. */
export const isFullMatrix = process.env.TEST_FULL_MATRIX === '1'

/** `storage.pool` of a test's gateway: it opens them all when it starts, and each costs Postgres a process. */
export const poolSize = 4

/** A suite that needs the run's Postgres and Redis servers. */
export function describeWithServices(title: string, suite: () => void): void {
  const missing = inject('postgresUrl') === '' ? 'Postgres (TEST_DATABASE_URL)' : 'Redis (TEST_REDIS_URL)'
  describeWhere(areServicesThere() ? 'there' : '', `no ${missing}`, title, suite)
}

export function areServicesThere(): boolean {
  return inject('postgresUrl') !== '' && inject('redisUrl') !== ''
}

/** A suite that stops and kills Postgres servers of its own (see `startPostgres`). */
export function describeWithPostgresBinary(title: string, suite: () => void): void {
  describeWhere(inject('postgresBin'), 'no postgres binary', title, suite)
}

/** A suite that stops and kills Redis servers of its own (see `startRedis`). */
export function describeWithRedisBinary(title: string, suite: () => void): void {
  describeWhere(inject('redisBin'), 'no redis-server binary', title, suite)
}

/** A suite that puts an nginx of its own behind the gateway (see `startNginx`). */
export function describeWithNginx(title: string, suite: () => void): void {
  describeWhere(inject('nginxBin'), 'no nginx binary', title, suite)
}

/** A suite that has Prometheus' own tool read what the gateway exposes. */
export function describeWithPromtool(title: string, suite: () => void): void {
  describeWhere(inject('promtoolBin'), 'no promtool binary', title, suite)
}

/** A suite that looks at pages with a browser (see `startBrowser`). */
export function describeWithChromium(title: string, suite: (bin: string) => void): void {
  describeWhere(inject('chromiumBin'), 'no chromium binary', title, () => suite(inject('chromiumBin')))
}

/** A suite whose programs ask a name server of its own (see `startNameServer`). */
export function describeWithNameServer(title: string, suite: () => void): void {
  describeWhere(inject('nameServerBin'), 'no dnsmasq, or not root', title, suite)
}

/** The run's Postgres server; a test makes a database of its own there (see databases.ts). */
export function postgresUrl(): string {
  return inject('postgresUrl')
}

/**
 * The run's Redis server, on the database number of this worker (test files of one worker run one after the
 * other), emptied.
 */
export async function emptyRedisUrl(): Promise<string> {
  const url = new URL(inject('redisUrl'))
  url.pathname = `/${Number(process.env.VITEST_POOL_ID ?? 1) % 16}`
  const redis = new Redis(url.href)
  await redis.flushdb()
  redis.disconnect()
  return url.href
}

/** Prints the name of each skipped suite, because some reporters do not. */
function describeWhere(there: string, missing: string, title: string, suite: () => void): void {
  if (there === '') console.warn(`skipped: ${title}: ${missing}`)
  describe.skipIf(there === '')(there === '' ? `${title}: ${missing}` : title, suite)
}
