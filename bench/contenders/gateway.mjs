// The gateway as an operator starts it, request log on and to a file, and its rows by route kind.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { answersTheUpstreams, givesRequestIds, refuses, tellsWhoCalls, wantsToken } from '../checks.mjs'
import { bearer, coursePath } from '../contender.mjs'
import { startProgram, temporaryFolder } from '../processes.mjs'
import { createCallers, readUser } from './callers.mjs'

/**
 * @typedef {object} Gateway
 * @property {import('../processes.mjs').Running} running
 * @property {import('./callers.mjs').Callers} callers
 * @property {string} database URL; empty where it is embedded
 */

const builtHere = '../dist/cli.js'
const adminToken = 'the-token-of-a-benchmark'
const proxies = [answersTheUpstreams, givesRequestIds]

/** What the bars on workers compare: as many as are answered, and an equal load for each process. */
export const unhurried = 'bearer, 3,000/s'
/** Each request is one of a session that has to live. */
export const inSession = 'bearer, logout_ends_access'
/** One client alone: each use waits for nobody. */
export const alone = 'free-daily admitted, alone'
export const byTwo = 'bearer, two workers'
export const byTwoUnhurried = 'bearer, two workers, 6,000/s'

/**
 * @param {Pick<import('../contender.mjs').Stage, 'upstream' | 'services'>} stage
 * @param {object} [options]
 * @param {string} [options.cli] the built command line, from bench/ or absolute
 * @param {number} [options.freeDaily] uses of a free user's day
 * @param {number} [options.crowded] how many more free users are made
 * @param {number} [options.workers]
 * @param {string} [options.host] of the service
 * @param {string} [options.auth] YAML that is added to the `auth` section
 * @param {string[]} [options.before] a command that runs the gateway, as `unshare` does
 * @returns {Promise<Gateway>}
 */
export async function startGateway(
  { upstream, services },
  {
    cli = builtHere,
    freeDaily = 1,
    crowded = 0,
    workers = 1,
    host = '127.0.0.1',
    auth = '',
    before = [],
  } = {},
) {
  const folder = temporaryFolder()
  const database = (await services?.createDatabase()) ?? ''
  const redis = (await services?.createRedis()) ?? ''
  const file = join(folder.path, 'gateway.yaml')
  writeFileSync(
    file,
    `server: { listen: '127.0.0.1:0'${workers === 1 ? '' : `, workers: ${workers}`} }
admin: { listen: '127.0.0.1:0', token: ${adminToken} }
storage:
  postgres: ${JSON.stringify(database)}
  redis: ${JSON.stringify(redis)}
  data_dir: ${JSON.stringify(join(folder.path, 'data'))}
# A run takes longer than a token lives by default.
auth: { access_token_ttl: 1d${auth} }
limits: { free_daily: ${freeDaily} }
upstreams: { service: { targets: ['http://${host}:${upstream.port}'], connections: 512 } }
routes:
  - { path: /public/*, upstream: service, auth: none }
  - { path: /guarded/*, upstream: service }
  - { path: /premium/*, upstream: service, plans: [premium] }
  - { path: /daily/*, upstream: service, free_daily: true }
`,
  )
  // As the image and the systemd unit start it.
  const environment = { MALLOC_MMAP_THRESHOLD_: '1048576' }
  const running = await startProgram(cli, ['start', '-c', file], environment, before)
  const [port = 0, admin = 0] = running.ports
  return { running, database, callers: await createCallers({ port, admin, adminToken }, crowded) }
}

/**
 * The rows of one build, in order.
 * @param {string} name of the build
 * @param {typeof startGateway} start
 * @param {string} [cli]
 */
export function gateway(name, start, cli = builtHere) {
  const names = [
    'public',
    'bearer',
    'API key',
    'plan',
    'free-daily admitted',
    alone,
    'free-daily refused',
    unhurried,
  ]
  return /** @type {import('../contender.mjs').Contender} */ ({
    rows: names.map(kind => rowName(name, kind)),
    async start(stage) {
      const usual = await start(stage, { cli })
      // How much of a day is free is one number for all routes: admitted and refused need a gateway each.
      const generous = await startGateway(stage, { cli, freeDaily: 1_000_000_000, crowded: 23 })
      const rows = [
        ...rowsOf(usual),
        admitted(generous),
        { ...admitted(generous), name: alone, others: [], connections: 1 },
        await refused(usual),
        atRate(bearerRow(usual), unhurried, 1),
      ]
      return rows.map(row => ({ ...row, name: rowName(name, row.name) }))
    },
  })
}

/**
 * The same gateway with `auth.logout_ends_access`.
 * @param {string} name of the build
 * @returns {import('../contender.mjs').Contender}
 */
export function sessionsEndAccess(name) {
  return {
    rows: [rowName(name, inSession)],
    async start(stage) {
      const row = bearerRow(await startGateway(stage, { auth: ', logout_ends_access: true' }))
      return [{ ...row, name: rowName(name, inSession) }]
    },
  }
}

/**
 * The same gateway as two processes and their primary.
 * @param {string} name of the build
 * @returns {import('../contender.mjs').Contender}
 */
export function twoWorkers(name) {
  return {
    rows: [byTwo, byTwoUnhurried].map(kind => rowName(name, kind)),
    absence: ({ services }) => (services === undefined ? 'workers need Postgres and Redis' : undefined),
    async start(stage) {
      const row = bearerRow(await startGateway(stage, { workers: 2 }))
      return [
        // It could fill two cores, which the load and the upstream want too.
        { ...row, name: rowName(name, byTwo), fillsItsCore: false },
        atRate(row, rowName(name, byTwoUnhurried), 2),
      ]
    },
  }
}

/** Requests a second of one process that is asked less than it could answer. */
const easy = 3_000

/**
 * As many for each process: a process that is at its end finds more of them a turn of its event loop, each of which is
 * cheaper for it.
 * @param {import('../contender.mjs').Row} row
 * @param {string} name
 * @param {number} processes that share the load
 * @returns {import('../contender.mjs').Row}
 */
function atRate(row, name, processes) {
  return { ...row, name, perSecond: easy * processes, fillsItsCore: false }
}

/** @param {string} name @param {string} kind */
export const rowName = (name, kind) => `${name}, ${kind}`

/**
 * @param {Gateway} gateway
 * @returns {import('../contender.mjs').Row[]}
 */
function rowsOf(gateway) {
  const { running, callers } = gateway
  const { premium, pro, free } = callers
  const shared = { running, status: 200, fillsItsCore: true }
  const key = { 'x-api-key': pro.key }
  const guarded = coursePath('guarded')
  return [
    { ...shared, name: 'public', question: { path: coursePath('public'), headers: {} }, checks: proxies },
    bearerRow(gateway),
    {
      ...shared,
      name: 'API key',
      question: { path: guarded, headers: key },
      checks: [
        ...proxies,
        refuses('a bad key gets 401', { path: guarded, headers: { 'x-api-key': `${pro.key}x` } }, 401),
        tellsWhoCalls('guarded', key, pro),
      ],
    },
    {
      ...shared,
      name: 'plan',
      question: { path: coursePath('premium'), headers: bearer(premium.token) },
      checks: [
        ...proxies,
        ...wantsToken('premium', premium.token),
        refuses('another plan gets 403', { path: coursePath('premium'), headers: bearer(free.token) }, 403),
        tellsWhoCalls('premium', bearer(premium.token), premium),
      ],
    },
  ]
}

/**
 * @param {Gateway} gateway
 * @returns {import('../contender.mjs').Row}
 */
export function bearerRow({ running, callers: { premium, inactive } }) {
  const guarded = coursePath('guarded')
  return {
    name: 'bearer',
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

/**
 * @param {Gateway} gateway
 * @returns {import('../contender.mjs').Row}
 */
export function admitted({ running, callers: { admin, free, crowd } }) {
  const question = { path: coursePath('daily'), headers: bearer(free.token) }
  return {
    name: 'free-daily admitted',
    running,
    question,
    // Uses of one user are one row of the database, and wait for each other.
    others: crowd.map(({ token }) => ({ ...question, headers: bearer(token) })),
    status: 200,
    // It waits for Redis and Postgres, which want the cores too.
    fillsItsCore: false,
    checks: [
      answersTheUpstreams,
      ...wantsToken('daily', free.token),
      tellsWhoCalls('daily', bearer(free.token), free),
      {
        title: 'every use is in the record',
        async findFault(row) {
          const before = (await readUser(admin, free.id)).daily_usage
          await answersTheUpstreams.findFault(row)
          const { daily_usage: after } = await readUser(admin, free.id)
          return after === before + 1 ? undefined : `${before} uses before one, ${after} after it`
        },
      },
    ],
  }
}

/**
 * @param {Gateway} gateway
 * @returns {Promise<import('../contender.mjs').Row>}
 */
async function refused({ running, callers: { free } }) {
  const question = { path: coursePath('daily'), headers: bearer(free.token) }
  return {
    name: 'free-daily refused',
    running,
    question,
    status: 429,
    // It is not the proxy but the load that is at its end here.
    fillsItsCore: false,
    checks: [
      refuses('the first use passes', question, 200),
      refuses('the second does not', question, 429),
      ...wantsToken('daily', free.token),
    ],
  }
}
