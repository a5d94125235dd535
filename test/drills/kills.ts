// A gateway is killed at random moments during registrations, token refreshes, password changes and mail requests.
// Every change that the gateway confirmed to a client must be stored.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { password } from '../support/client.ts'
import { bearer, createAccounts, noRateLimits } from './accounts.ts'
import { openStage, type Replica } from './replicas.ts'
import { random, setting } from './settings.ts'
import { post, send } from './subjects.ts'
import type { Watch } from './watch.ts'

const kills = setting('KILLS', 200, 10)
/** The number of clients of each kind that run at the same time. */
const lanes = 2

interface User {
  readonly email: string
  password: string
  /** The number of password changes that the user has started. */
  turn: number
  /** The number of mail requests of this user that the gateway confirmed. */
  mailed: number
  /** The tokens of the user's session. */
  refresh?: string | undefined
  access?: string | undefined
  /**
   * True if the last refresh got no response. In this case, the client does not know whether its refresh token is still
   * valid.
   */
  isUnsure?: boolean
  /**
   * The new password of the last password change. If the change got no response, the client does not know whether the
   * gateway stored this password.
   */
  next?: string | undefined
}

interface DrillRecord {
  /** The emails of confirmed registrations. */
  readonly answered: string[]
  /** The number of requests that a kill cut off. */
  cut: number
  readonly wrong: string[]
  exchanges: number
  changes: number
  asked: number
  /**
   * If a kill cut off a refresh, the client refreshes again. This list contains the status codes of these second
   * refreshes.
   */
  readonly ends: number[]
}

interface Play {
  readonly gateway: Replica
  readonly record: DrillRecord
  readonly database: Pool
}

export async function killsAtRandom({ say, expect }: Watch): Promise<void> {
  const stage = await openStage()
  // No server runs at these two addresses, because the drill checks only the rows in the database.
  const setting = {
    settings: `auth: { ${noRateLimits}, hashing: { queue: 1000, wait: 30s } }
mail: { smtp: 'smtp://127.0.0.1:1', from: 'drill@example.com', verify_on_register: true, rate_limits: { per_address: 0, per_email: 0 } }
events: { url: 'http://127.0.0.1:1/events', secret: whsec_ZHJpbGxkcmlsbGRyaWxsZHJpbGxkcmlsbA== }`,
  }
  try {
    let gateway = await stage.start(setting)
    const record: DrillRecord = {
      answered: [],
      cut: 0,
      wrong: [],
      exchanges: 0,
      changes: 0,
      asked: 0,
      ends: [],
    }
    const emails = await createAccounts(stage.database, lanes * 3)
    const users: User[] = emails.map(email => ({ email, password, turn: 0, mailed: 0 }))
    for (let kill = 0; kill < kills; kill += 1) {
      const play = { gateway, record, database: stage.database }
      await Promise.all(users.map(user => prepare(play, user)))
      const working = Array.from({ length: lanes }, () => register(play))
      for (const [index, work] of [exchange, change, askForMail].entries())
        for (const user of users.slice(index * lanes, (index + 1) * lanes)) working.push(work(play, user))
      await sleep(50 + random() * 1_450)
      process.kill(gateway.pid, 'SIGKILL')
      await Promise.all(working)
      gateway = await stage.start(setting)
      await Promise.all(users.map(user => checkAfterKill({ ...play, gateway }, user)))
    }
    await judge({ say, expect }, record, users, stage.database)
  } finally {
    await stage.stop()
  }
}

/**
 * If no refresh token of the user is known, for example after a kill, deletes the user's sessions and logs the user in.
 */
async function prepare({ gateway, database }: Play, user: User): Promise<void> {
  if (user.refresh !== undefined) return
  await database.query('delete from refresh_tokens where user_id = (select id from users where email = $1)', [
    user.email,
  ])
  const { body } = await post(gateway.port, 'login', { email: user.email, password: user.password })
  user.refresh = tokenOf(body.refresh_token)
  user.access = tokenOf(body.access_token)
}

function tokenOf(field: unknown): string | undefined {
  return typeof field === 'string' ? field : undefined
}

/** Registers users until the gateway is killed. */
async function register({ gateway, record }: Play): Promise<void> {
  for (;;) {
    const email = `person-${record.asked}-${Math.round(random() * 1e9)}@example.com`
    record.asked += 1
    const { status } = await post(gateway.port, 'register', { email, password })
    if (status === 0) break
    if (status === 201) record.answered.push(email)
    else record.wrong.push(`registration: ${status}`)
  }
  record.cut += 1
}

/** Refreshes the tokens of a user until the gateway is killed. */
async function exchange({ gateway, record }: Play, user: User): Promise<void> {
  while (user.refresh !== undefined) {
    const { status, body } = await post(gateway.port, 'refresh', { refresh_token: user.refresh })
    if (status === 0) {
      user.isUnsure = true
      record.cut += 1
      return
    }
    if (status !== 200) {
      record.wrong.push(`refresh with a confirmed token: ${status}`)
      return
    }
    record.exchanges += 1
    user.refresh = tokenOf(body.refresh_token)
  }
}

/** Changes the password of a user until the gateway is killed. */
async function change({ gateway, record }: Play, user: User): Promise<void> {
  while (user.access !== undefined) {
    user.turn += 1
    user.next = `${password} ${user.turn}`
    const body = JSON.stringify({ current_password: user.password, new_password: user.next })
    const answer = await send(gateway.port, 'POST', '/api/v1/auth/password', bearer(user.access), body)
    if (answer.status === 0) {
      record.cut += 1
      return
    }
    if (answer.status !== 200) {
      record.wrong.push(`password change: ${answer.status}`)
      return
    }
    record.changes += 1
    user.password = user.next
    user.access = tokenOf(JSON.parse(answer.text).access_token)
  }
}

/** Requests mails to a user until the gateway is killed. */
async function askForMail({ gateway, record }: Play, user: User): Promise<void> {
  for (;;) {
    const { status } = await post(gateway.port, 'password/forgot', { email: user.email })
    if (status === 0) break
    if (status === 202) user.mailed += 1
    else record.wrong.push(`mail request: ${status}`)
  }
  record.cut += 1
}

/**
 * If a token refresh or a password change got no response, checks that the change was stored completely or not at all.
 */
async function checkAfterKill(play: Play, user: User): Promise<void> {
  if (user.isUnsure) await checkExchange(play, user)
  if (user.next !== undefined) await checkPassword(play, user, user.next)
}

async function checkExchange({ gateway, record, database }: Play, user: User): Promise<void> {
  user.isUnsure = false
  const { status, body } = await post(gateway.port, 'refresh', { refresh_token: user.refresh })
  user.refresh = tokenOf(body.refresh_token)
  const { rows } = await database.query<{ good: number }>(
    `select count(*)::integer as good from refresh_tokens t join users u on u.id = t.user_id
      where u.email = $1 and t.revoked = 0`,
    [user.email],
  )
  const good = rows[0]?.good
  record.ends.push(status)
  // A 200 means that the gateway had not stored the refresh that was cut off, and that the second refresh replaced the
  // old token. A 401 means that the gateway had stored the first refresh. Then only the token in the lost response is
  // valid. So in both cases, exactly one token must be valid.
  if ((status !== 200 && status !== 401) || good !== 1)
    record.wrong.push(`refresh after a cut-off refresh: ${status}, ${good} valid tokens`)
}

async function checkPassword({ gateway, record }: Play, user: User, next: string): Promise<void> {
  const tried: { one: string; status: number }[] = []
  for (const one of new Set([user.password, next])) {
    const { status } = await post(gateway.port, 'login', { email: user.email, password: one })
    tried.push({ one, status })
  }
  const [right, another] = tried.filter(({ status }) => status === 200)
  if (right !== undefined && another === undefined) user.password = right.one
  else record.wrong.push(`logins after a cut-off password change: ${tried.map(({ status }) => status)}`)
  user.next = undefined
  user.refresh = undefined
}

async function judge(
  { say, expect }: Watch,
  record: DrillRecord,
  users: readonly User[],
  database: Pool,
): Promise<void> {
  const count = async (sql: string, parameter: unknown) =>
    (await database.query<{ n: number }>(`select count(*)::integer as n from ${sql}`, [parameter])).rows[0]
      ?.n ?? 0
  const missing = (rows: string) =>
    count(`unnest($1::text[]) as email where not exists (${rows} = email)`, record.answered)
  const lost = await missing('select from users u where u.email')
  const unmailed = await missing("select from mails where kind = 'verify' and address")
  const untold = await missing(
    "select from events where type = 'user.created' and body::jsonb->'data'->>'email'",
  )
  expect(
    `killed ${kills} times: every confirmed registration is stored with its mail and its event`,
    record.answered.length > 0 && lost + unmailed + untold === 0,
    `${record.answered.length} registrations; ${lost} lost, ${unmailed} without a mail, ${untold} without an event`,
  )
  const mailed = users.filter(user => user.mailed > 0)
  let fewer = 0
  for (const { email, mailed: due } of mailed)
    if ((await count("mails where address = $1 and kind = 'reset'", email)) < due) fewer += 1
  expect(
    'every confirmed mail is stored',
    mailed.length > 0 && fewer === 0,
    `${mailed.reduce((sum, user) => sum + user.mailed, 0)} mails, ${fewer} of ${mailed.length} users have fewer`,
  )
  const exchanged = record.ends.filter(status => status === 401).length
  expect(
    'confirmed tokens and passwords are valid; after a change that was cut off, exactly one of the old and new values is',
    record.wrong.length === 0 && record.exchanges > 0 && record.changes > 0,
    `${record.exchanges} refreshes, ${record.changes} password changes; ${record.wrong.length} wrong ${[...new Set(record.wrong)].slice(0, 3).join('; ')}`,
  )
  say(
    `${record.cut} requests were cut off; ${exchanged} of ${record.ends.length} cut-off refreshes had been stored`,
  )
}
