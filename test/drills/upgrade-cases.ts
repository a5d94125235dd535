// Two versions run side by side. Both versions refuse the refresh token of an ended session. It does not matter which
// version created, refreshed or ended the session.
import type { Pool } from 'pg'
import { bearer, createAccounts, login, logout, refresh, type TokenPair } from './accounts.ts'
import { adminToken, type Replica } from './replicas.ts'
import { post } from './subjects.ts'
import type { Watch } from './watch.ts'

const races = 100

export type Version = 'old' | 'new'

export interface VersionedReplica extends Replica {
  readonly version: Version
}

/** One replica of each version. */
type Replicas = readonly [VersionedReplica, VersionedReplica]

interface User {
  readonly id: string
  readonly email: string
}

/** Returns a different user at each call. */
type NextUser = () => User

export async function judgeSideBySide(
  replicas: Replicas,
  database: Pool,
  title: string,
  expect: Watch['expect'],
): Promise<void> {
  const nextUser = await createUsers(database)
  const { cases, wrong } = await tryCases(replicas, nextUser)
  expect(
    `${title}, side by side: both versions refuse used tokens and tokens of ended sessions`,
    wrong.length === 0,
    `${wrong.length} of ${cases} accepted ${[...new Set(wrong)].join('; ')}`,
  )
  const fair = await raceUses(replicas, nextUser)
  expect(
    `${title}, side by side: exactly one of 4 concurrent uses of a refresh token succeeds`,
    fair === races,
    `${fair} of ${races} times`,
  )
  const survived = await raceEnds(replicas, nextUser)
  expect(
    `${title}, side by side: ending all sessions of a user also ends sessions during a refresh`,
    survived === 0,
    `${survived} of ${races} accepted`,
  )
}

/** Ways to end a session at a replica. */
const ends: Readonly<Record<string, (replica: Replica, user: User & TokenPair) => Promise<void>>> = {
  logout: ({ port }, pair) => logout(port, pair.refresh),
  'all sessions ended': (replica, { id }) => endAll(replica, id),
  'session ended by ID': async ({ port }, { access }) => {
    const headers = bearer(access)
    const url = `http://127.0.0.1:${port}/api/v1/auth/sessions`
    const { sessions } = (await (await fetch(url, { headers })).json()) as { sessions: { id: string }[] }
    for (const { id } of sessions) await fetch(`${url}/${id}`, { method: 'DELETE', headers })
  },
}

/**
 * Tries every way to end a session. A session is created, refreshed, ended and then used. For each of these four steps,
 * tries both versions, in all combinations.
 */
async function tryCases(replicas: Replicas, nextUser: NextUser): Promise<{ cases: number; wrong: string[] }> {
  const places = replicas.flatMap(born =>
    replicas.flatMap(exchanged => replicas.map(ended => ({ born, exchanged, ended }))),
  )
  const wrong: string[] = []
  let cases = 0
  for (const { born, exchanged, ended } of places) {
    for (const [how, end] of Object.entries(ends)) {
      // The old version has no endpoint that ends a session by its ID.
      if (how === 'session ended by ID' && ended.version === 'old') continue
      for (const asked of replicas) {
        const user = nextUser()
        const first = await login(born.port, user.email)
        const pair = await refresh(exchanged.port, first.refresh)
        const isUsedUp = (await useAt(asked, first.refresh)) === 401
        await end(ended, { ...user, ...pair })
        const isEnded = (await useAt(asked, pair.refresh)) === 401
        cases += 1
        if (!isUsedUp || !isEnded)
          wrong.push(
            `created at ${born.version}, refreshed at ${exchanged.version}, ${how} at ${ended.version}`,
          )
      }
    }
  }
  return { cases, wrong }
}

async function createUsers(database: Pool): Promise<NextUser> {
  const emails = await createAccounts(database, 500)
  const { rows } = await database.query<User>('select id, email from users where email = any($1)', [emails])
  return () => {
    const user = rows.pop()
    if (user === undefined) throw new Error('no user is left')
    return user
  }
}

async function endAll({ admin }: Replica, id: string): Promise<void> {
  const { status } = await fetch(`http://127.0.0.1:${admin}/admin/v1/users/${id}/sessions`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${adminToken}` },
  })
  if (status !== 200) throw new Error(`ending all sessions failed with ${status}`)
}

/** Uses a refresh token. @returns the status code */
async function useAt({ port }: Replica, token: string): Promise<number> {
  return (await post(port, 'refresh', { refresh_token: token })).status
}

/**
 * Uses each refresh token four times at once.
 * @returns the number of tokens for which exactly one of the four uses succeeded
 */
async function raceUses([one, other]: Replicas, nextUser: NextUser): Promise<number> {
  let fair = 0
  for (let turn = 0; turn < races; turn += 1) {
    const { refresh: token } = await login((turn % 2 === 0 ? one : other).port, nextUser().email)
    const statuses = await Promise.all([one, other, one, other].map(replica => useAt(replica, token)))
    if (statuses.filter(status => status === 200).length === 1) fair += 1
  }
  return fair
}

/**
 * Ends all sessions of a user while a refresh is in progress. Repeats this with many users.
 * @returns how often a replica accepts a refresh token after its session has ended
 */
async function raceEnds(replicas: Replicas, nextUser: NextUser): Promise<number> {
  let survived = 0
  for (let turn = 0; turn < races; turn += 1) {
    const { id, email } = nextUser()
    const [one, other] = turn % 2 === 0 ? replicas : ([replicas[1], replicas[0]] as const)
    const { refresh: token } = await login(one.port, email)
    const [exchanged] = await Promise.all([
      post(one.port, 'refresh', { refresh_token: token }),
      endAll(other, id),
    ])
    const last = exchanged.status === 200 ? String(exchanged.body.refresh_token) : token
    for (const replica of replicas) if ((await useAt(replica, last)) !== 401) survived += 1
  }
  return survived
}
