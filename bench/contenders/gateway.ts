// Starts the gateway with its request log in a file, and returns a row for each kind of route.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cli, startProgram, temporaryFolder } from '../../test/support/processes.ts'
import { answersTheUpstreams, givesRequestIds, refuses, tellsWhoCalls, wantsToken } from '../checks.ts'
import { bearer, type Contender, coursePath, type Gateway, type Row, type Stage } from '../contender.ts'
import { kinds, ours, rowName } from '../row-names.ts'
import { createCallers, readUses } from './callers.ts'

interface Options {
  /** The absolute path of the built program. */
  readonly cli?: string
  /** The daily limit of free users. */
  readonly freeDaily?: number
  /** The number of additional free users. */
  readonly crowded?: number
  readonly workers?: number
  /** The host name of the upstream. */
  readonly host?: string
  /** The section `plans` as YAML. Without it, the gateway uses the built-in plans. */
  readonly plans?: string
  /** Additional routes as YAML, one per line. */
  readonly routes?: string
  /** YAML to add to the section `server`. */
  readonly server?: string
  /** YAML to add to the section `auth`. */
  readonly auth?: string
  /** The command and arguments that start the program of the gateway, for example `unshare -m`. */
  readonly before?: readonly string[]
}

type Start = (stage: Pick<Stage, 'upstream' | 'services'>, options?: Options) => Promise<Gateway>

const adminToken = 'the-token-of-a-benchmark'
const proxies = [answersTheUpstreams, givesRequestIds]

export const startGateway: Start = async ({ upstream, services }, options = {}) => {
  const { workers = 1, host = '127.0.0.1', freeDaily = 1, crowded = 0, auth = '', before = [] } = options
  const { plans = '', routes = '', server = '' } = options
  const folder = temporaryFolder()
  const database = (await services?.createDatabase()) ?? ''
  const redis = (await services?.createRedis()) ?? ''
  const file = join(folder.path, 'gateway.yaml')
  // `connections_per_client` must be at least 48, because in most rows, one client uses all 48 connections. `pool` is
  // small, because all contenders share one Postgres, which allows only 100 connections by default.
  writeFileSync(
    file,
    `server: { listen: '127.0.0.1:0'${workers === 1 ? '' : `, workers: ${workers}`}${server} }
admin: { listen: '127.0.0.1:0', token: ${adminToken} }
storage:
  postgres: ${JSON.stringify(database)}
  redis: ${JSON.stringify(redis)}
  pool: ${workers === 1 ? 10 : 5}
  data_dir: ${JSON.stringify(join(folder.path, 'data'))}
# A run takes longer than the default lifetime of a token.
auth: { access_token_ttl: 1d${auth} }
limits: { free_daily: ${freeDaily} }
${plans}upstreams:
  service: { targets: ['http://${host}:${upstream.port}'], connections: 512, connections_per_client: 64 }
routes:
  - { path: /public/*, upstream: service, auth: none }
  - { path: /guarded/*, upstream: service }
  - { path: /premium/*, upstream: service, plans: [premium] }
  - { path: /daily/*, upstream: service, free_daily: true }
${routes}`,
  )
  // The image and the systemd unit also set this variable, so the benchmark measures the gateway as operators run it.
  const environment = { MALLOC_MMAP_THRESHOLD_: '1048576' }
  const running = await startProgram(options.cli ?? cli, ['start', '-c', file], environment, before)
  const [port = 0, admin = 0] = running.ports
  return { running, database, callers: await createCallers({ port, admin, adminToken }, crowded) }
}

/**
 * Returns the contender for one build of the gateway.
 * @param build the name of the build; each row name begins with this name
 * @param start returns a running gateway for the rows that need no high daily limit
 * @param program the absolute path of the program of this build
 */
export function gateway(build: string, start: Start, program: string = cli): Contender {
  const { public: open, bearer: token, apiKey, plan, admitted: counted, oneClient, refused: spent } = kinds
  return {
    rows: [open, token, apiKey, plan, counted, oneClient, spent].map(kind => rowName(build, kind)),
    async start(stage) {
      const usual = await start(stage, { cli: program })
      // A gateway has only one daily limit. The rows with admitted uses need a high limit. The row with refused uses
      // needs a low limit. So these rows need separate gateways.
      const generous = await startGateway(stage, { cli: program, freeDaily: 1_000_000_000, crowded: 23 })
      const rows = [
        ...rowsOf(usual),
        admitted(generous),
        { ...admitted(generous), name: oneClient, others: [], connections: 1 },
        refused(usual),
      ]
      return rows.map(row => ({ ...row, name: rowName(build, row.name) }))
    },
  }
}

/** The gateway with `auth.logout_ends_access`. With this setting, the gateway checks the session of each request. */
export const sessionsEndAccess: Contender = {
  rows: [rowName(ours, kinds.inSession)],
  async start(stage) {
    const row = bearerRow(await startGateway(stage, { auth: ', logout_ends_access: true' }))
    return [{ ...row, name: rowName(ours, kinds.inSession) }]
  },
}

/** The gateway with two worker processes and one primary process. */
export const twoWorkers: Contender = {
  rows: [rowName(ours, kinds.twoWorkers)],
  absence: ({ services }) => (services === undefined ? 'workers need Postgres and Redis' : undefined),
  async start(stage) {
    const row = bearerRow(await startGateway(stage, { workers: 2 }))
    // Two workers cannot fill two cores, because the load generator and the upstream need CPU time too.
    return [{ ...row, name: rowName(ours, kinds.twoWorkers), workers: 2, fillsItsCore: false }]
  },
}

function rowsOf(gateway: Gateway): Row[] {
  const { running, callers } = gateway
  const { premium, pro, free } = callers
  const shared = { running, status: 200, fillsItsCore: true }
  const key = { 'x-api-key': pro.key }
  const guarded = coursePath('guarded')
  return [
    {
      ...shared,
      name: kinds.public,
      question: { path: coursePath('public'), headers: {} },
      checks: proxies,
    },
    bearerRow(gateway),
    {
      ...shared,
      name: kinds.apiKey,
      question: { path: guarded, headers: key },
      checks: [
        ...proxies,
        refuses('a wrong key gets 401', { path: guarded, headers: { 'x-api-key': `${pro.key}x` } }, 401),
        tellsWhoCalls('guarded', key, pro),
      ],
    },
    {
      ...shared,
      name: kinds.plan,
      question: { path: coursePath('premium'), headers: bearer(premium.token) },
      checks: [
        ...proxies,
        ...wantsToken('premium', premium.token),
        refuses(
          'a user on another plan gets 403',
          { path: coursePath('premium'), headers: bearer(free.token) },
          403,
        ),
        tellsWhoCalls('premium', bearer(premium.token), premium),
      ],
    },
  ]
}

export function bearerRow({ running, callers: { premium, inactive } }: Gateway): Row {
  const guarded = coursePath('guarded')
  return {
    name: kinds.bearer,
    running,
    question: { path: guarded, headers: bearer(premium.token) },
    status: 200,
    fillsItsCore: true,
    checks: [
      ...proxies,
      ...wantsToken('guarded', premium.token),
      refuses('an inactive user gets 401', { path: guarded, headers: bearer(inactive.token) }, 401),
      tellsWhoCalls('guarded', bearer(premium.token), premium),
    ],
  }
}

function admitted(gateway: Gateway): Row {
  const { admin, free } = gateway.callers
  return countedRow(gateway, {
    name: kinds.admitted,
    folder: 'daily',
    readUses: () => readUses(admin, free.id),
  })
}

interface CountedRow {
  readonly name: string
  /** The first path segment of the route that counts uses. */
  readonly folder: string
  /** Returns how many uses the gateway has recorded for the user `free`. */
  readUses(): Promise<number>
}

/** Returns a row whose requests are counted as uses and forwarded. */
export function countedRow(
  { running, callers: { free, crowd } }: Gateway,
  { name, folder, readUses }: CountedRow,
): Row {
  const path = coursePath(folder)
  return {
    name,
    running,
    question: { path, headers: bearer(free.token) },
    // The requests come from many users. With only one user, the uses would wait for each other, because each use would
    // update the same database row.
    others: crowd.map(({ token }) => ({ path, headers: bearer(token) })),
    status: 200,
    // The gateway does not keep a core busy, because it waits for Redis and Postgres, which need CPU time too.
    fillsItsCore: false,
    checks: [
      answersTheUpstreams,
      ...wantsToken(folder, free.token),
      tellsWhoCalls(folder, bearer(free.token), free),
      {
        title: 'every use is recorded',
        async findFault(row) {
          const before = await readUses()
          await answersTheUpstreams.findFault(row)
          const after = await readUses()
          return after === before + 1 ? undefined : `${before} uses before the request, ${after} after it`
        },
      },
    ],
  }
}

function refused(gateway: Gateway): Row {
  return refusedRow(gateway, { name: kinds.refused, folder: 'daily' })
}

/** Returns a row whose requests are refused, because its first check uses up the limit of the user `free`. */
export function refusedRow(
  { running, callers: { free } }: Gateway,
  { name, folder }: Pick<CountedRow, 'name' | 'folder'>,
): Row {
  const question = { path: coursePath(folder), headers: bearer(free.token) }
  return {
    name,
    running,
    question,
    status: 429,
    // The load generator is slower than the gateway, so the gateway does not keep a core busy.
    fillsItsCore: false,
    checks: [
      refuses('the first use passes', question, 200),
      refuses('the second use is refused', question, 429),
      ...wantsToken(folder, free.token),
    ],
  }
}
