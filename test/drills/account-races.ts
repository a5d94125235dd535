// Conflicting requests of one user run at the same time on three replicas. Exactly one of several password changes, or
// of two account deletions, must succeed. After all sessions of a user have been ended, no refresh token of the user
// works. A deleted user leaves no rows in the database.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { password } from '../support/client.ts'
import { claimsOf } from '../support/sessions.ts'
import { bearer, createAccounts, login, noRateLimits, type TokenPair } from './accounts.ts'
import { openStage } from './replicas.ts'
import { random, setting } from './settings.ts'
import { startUpstream } from './stage.ts'
import { type Answer, post, send } from './subjects.ts'
import { countsOf, type Watch } from './watch.ts'

const tries = setting('ACCOUNT_TRIES', 2_000, 200)
/** The number of users whose requests run at the same time. */
const lanes = 4
/** The number of password changes that one user requests at the same time. */
const rivals = 8

interface Place {
  readonly ports: readonly [number, number, number]
  readonly database: Pool
}

interface User extends TokenPair {
  readonly id: number
  readonly email: string
}

export async function accountRaces({ expect }: Watch): Promise<void> {
  const upstream = await startUpstream()
  const stage = await openStage()
  try {
    const setting = {
      settings: `auth: { ${noRateLimits}, hashing: { queue: 1000, wait: 30s } }\naccount: { deletion: true }\nlimits: { free_daily: 1000000 }`,
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes: [{ path: /public/small, upstream: service, free_daily: true }]`,
    }
    const start = async () => (await stage.start(setting)).port
    const place: Place = { ports: [await start(), await start(), await start()], database: stage.database }
    await passwordChanges(place, expect)
    await endings(place, expect)
    await deletions(place, expect)
    await twoDeletions(place, expect)
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

async function passwordChanges(place: Place, expect: Watch['expect']): Promise<void> {
  const rounds = await race(place, Math.ceil(tries / rivals), async (user, anyPort) => {
    const changes = Array.from({ length: rivals }, (_, n) =>
      call(anyPort(), 'POST', '/password', user, {
        current_password: password,
        new_password: `${password} ${n}`,
      }),
    )
    const answers = await Promise.all(changes)
    return { statuses: answers.map(statusOf), sessions: await activeSessions(place, user) }
  })
  expect(
    `${rounds.length * rivals} password changes, ${rivals} at a time with the same current password: exactly one of them succeeds`,
    rounds.every(({ statuses }) => statuses.filter(status => status === 200).length === 1) &&
      rounds.every(({ statuses }) => statuses.every(status => status === 200 || status === 401)),
    countsOf(rounds.flatMap(({ statuses }) => statuses)),
  )
  expect(
    'after the changes, only the session of the successful change is active',
    rounds.every(({ sessions }) => sessions === 1),
    `${rounds.filter(({ sessions }) => sessions === 1).length} of ${rounds.length}`,
  )
}

async function endings(place: Place, expect: Watch['expect']): Promise<void> {
  const [one, two, three] = place.ports
  const rounds = await race(place, tries, async (user, anyPort) => {
    const others = [await signIn(one, user.email), await signIn(two, user.email)]
    const rotate = (token: unknown) => post(anyPort(), 'refresh', { refresh_token: token })
    const rotations = [...others, user].map(async pair => {
      await pause()
      return rotate(pair.refresh)
    })
    await pause()
    const ended = await call(three, 'DELETE', '/sessions', user, { all: true })
    const rotated = await Promise.all(rotations)
    const successors = rotated.flatMap(({ status, body }) => (status === 200 ? [body.refresh_token] : []))
    const later = await Promise.all(successors.map(rotate))
    return {
      status: ended.status,
      rotated: successors.length,
      alive: later.filter(({ status }) => status !== 401).length,
      sessions: await activeSessions(place, user),
    }
  })
  const sum = (field: 'alive' | 'rotated' | 'sessions') =>
    rounds.reduce((total, round) => total + round[field], 0)
  expect(
    `all sessions ended ${rounds.length} times during three refreshes: no refresh token works afterwards`,
    sum('alive') === 0 && sum('sessions') === 0,
    `${sum('alive')} of ${sum('rotated')} tokens issued meanwhile work, ${sum('sessions')} sessions left`,
  )
  expect(
    'each request that ends all sessions gets a 200',
    rounds.every(({ status }) => status === 200),
    countsOf(rounds.map(({ status }) => status)),
  )
}

async function deletions(place: Place, expect: Watch['expect']): Promise<void> {
  const rounds = await race(place, tries, async (user, anyPort) => {
    const after = async (ask: () => Promise<{ status: number }>) => {
      await pause()
      return (await ask()).status
    }
    const [deleted, ...others] = await Promise.all([
      after(() => call(anyPort(), 'DELETE', '/account', user, { current_password: password })),
      after(() => post(anyPort(), 'login', { email: user.email, password })),
      after(() => post(anyPort(), 'refresh', { refresh_token: user.refresh })),
      after(() => send(anyPort(), 'GET', '/public/small', bearer(user.access))),
      after(() => send(anyPort(), 'POST', '/api/v1/user/api-token', bearer(user.access))),
    ])
    return { deleted, statuses: [deleted, ...others], left: await leftOf(place, user) }
  })
  expect(
    `${rounds.length} deletions during a login, a refresh, a counted use and a new API key: no row of the user is left`,
    rounds.every(({ left, deleted }) => left === 0 && deleted === 200),
    `${rounds.filter(({ deleted }) => deleted === 200).length} deleted, ${rounds.reduce((sum, { left }) => sum + left, 0)} rows left`,
  )
  const statuses = rounds.flatMap(round => round.statuses)
  expect(
    'none of the requests during a deletion gets a 500',
    statuses.every(status => status > 0 && status !== 500),
    countsOf(statuses),
  )
}

async function twoDeletions(place: Place, expect: Watch['expect']): Promise<void> {
  const rounds = await race(place, tries, async (user, anyPort) => {
    const leave = () => call(anyPort(), 'DELETE', '/account', user, { current_password: password })
    const answers = await Promise.all([leave(), leave()])
    return { statuses: answers.map(statusOf).sort(), left: await leftOf(place, user) }
  })
  expect(
    `two concurrent deletions, ${rounds.length} times: one gets a 200, the other a 401, no row is left`,
    rounds.every(({ statuses: [a, b], left }) => a === 200 && b === 401 && left === 0),
    countsOf(rounds.flatMap(({ statuses }) => statuses)),
  )
}

/** Calls `play` `count` times. Up to `lanes` calls run at the same time. Each call gets its own logged-in user. */
async function race<Round>(
  { ports, database }: Place,
  count: number,
  play: (user: User, anyPort: () => number) => Promise<Round>,
): Promise<Round[]> {
  const emails = await createAccounts(database, count)
  const anyPort = () => ports[Math.floor(random() * ports.length)] ?? 0
  const rounds: Round[] = []
  const lane = async () => {
    for (let email = emails.pop(); email !== undefined; email = emails.pop()) {
      const pair = await signIn(anyPort(), email)
      const id = Number(claimsOf(pair.access).sub)
      rounds.push(await play({ id, email, ...pair }, anyPort))
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return rounds
}

/**
 * Logs in. If the login fails, for example because the gateway is overloaded, tries again. The conflicting requests
 * start only after the login, so a late login does no harm.
 */
async function signIn(port: number, email: string): Promise<TokenPair> {
  for (let left = 20; ; left -= 1) {
    try {
      return await login(port, email)
    } catch (error) {
      if (left === 0) throw error
      await sleep(100)
    }
  }
}

function call(port: number, method: string, path: string, { access }: User, body: object): Promise<Answer> {
  const text = JSON.stringify(body)
  // Node does not set Content-Length for a DELETE with a body.
  const headers = { ...bearer(access), 'content-length': Buffer.byteLength(text) }
  return send(port, method, `/api/v1/auth${path}`, headers, text)
}

/** Waits up to 4 ms, so that the requests start in a different order each time. */
function pause(): Promise<void> {
  return sleep(random() * 4)
}

function activeSessions({ database }: Place, { id }: User): Promise<number> {
  return count(
    database,
    `select count(*)::integer as n from refresh_tokens t join users u on u.id = t.user_id
      where u.id = $1 and t.revoked = 0 and t.session_epoch = u.session_epoch`,
    id,
  )
}

function leftOf({ database }: Place, { id }: User): Promise<number> {
  const tables = ['subscriptions', 'refresh_tokens', 'api_tokens', 'webhooks', 'account_codes', 'mails']
  const counts = tables.map(table => `(select count(*) from ${table} where user_id = $1)`)
  return count(
    database,
    `select (select count(*) from users where id = $1)::integer + (${counts.join(' + ')})::integer as n`,
    id,
  )
}

async function count(database: Pool, sql: string, id: number): Promise<number> {
  const { rows } = await database.query<{ n: number }>(sql, [id])
  return rows[0]?.n ?? Number.NaN
}

function statusOf({ status }: { readonly status: number }): number {
  return status
}
