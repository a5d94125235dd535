// A gateway is killed at random moments during registrations, exchanges of tokens, changes of password and mails: what it answered holds.
import { setTimeout as sleep } from 'node:timers/promises'
import { bearer, createAccounts, noRateLimits, password } from './accounts.mjs'
import { openStage } from './replicas.mjs'
import { random, setting } from './settings.mjs'
import { post, send } from './subjects.mjs'

const kills = setting('KILLS', 200, 10)
/** Of each kind at one time. */
const lanes = 2

/** @type {import('./main.mjs').Drill} */
export async function killsAtRandom({ say, expect }) {
  const stage = await openStage()
  // Nobody listens there: that a mail is in the store is what counts.
  const setting = {
    settings: `auth: { ${noRateLimits}, hashing: { queue: 1000, wait: 30s } }
mail: { smtp: 'smtp://127.0.0.1:1', from: 'drill@example.com', verify_on_register: true, rate_limits: { per_address: 0, per_email: 0 } }
events: { url: 'http://127.0.0.1:1/events', secret: whsec_ZHJpbGxkcmlsbGRyaWxsZHJpbGxkcmlsbA== }`,
  }
  try {
    let gateway = await stage.start(setting)
    const record = { answered: [], mails: 0, cut: 0, wrong: [], exchanges: 0, changes: 0, asked: 0, ends: [] }
    const emails = await createAccounts(stage.database, lanes * 3)
    const users = emails.map(email => ({ email, password, turn: 0, mailed: 0 }))
    const kinds = [register, exchange, change, askForMail]
    for (let kill = 0; kill < kills; kill += 1) {
      const play = { gateway, record, database: stage.database }
      await Promise.all(users.map(user => prepare(play, user)))
      const working = kinds.flatMap((work, kind) =>
        Array.from({ length: lanes }, (_, lane) => work(play, users[(kind - 1) * lanes + lane])),
      )
      await sleep(50 + random() * 1_450)
      process.kill(gateway.pids[0], 'SIGKILL')
      await Promise.all(working)
      gateway = await stage.start(setting)
      await Promise.all(users.map(user => checkAfterKill({ ...play, gateway }, user)))
    }
    await judge({ expect, say, record, users, database: stage.database })
  } finally {
    await stage.stop()
  }
}

/** Signed in, where the last kill has left nothing: with one session, whose tokens are known. */
async function prepare({ gateway, database }, user) {
  if (user.refresh !== undefined) return
  await database.query('delete from refresh_tokens where user_id = (select id from users where email = $1)', [
    user.email,
  ])
  const { body } = await post(gateway.port, 'login', { email: user.email, password: user.password })
  user.refresh = body.refresh_token
  user.access = body.access_token
}

/** Until the gateway is gone, as each of the others. */
async function register({ gateway, record }) {
  for (;;) {
    const email = `person-${record.asked}-${Math.round(random() * 1e9)}@example.com`
    record.asked += 1
    const { status } = await post(gateway.port, 'register', { email, password })
    if (status === 0) return cut(record)
    if (status === 201) record.answered.push(email)
    else record.wrong.push(`registration ${status}`)
  }
}

async function exchange({ gateway, record }, user) {
  while (user.refresh !== undefined) {
    const { status, body } = await post(gateway.port, 'refresh', { refresh_token: user.refresh })
    if (status === 0) {
      user.isUnsure = true
      return cut(record)
    }
    if (status !== 200) return record.wrong.push(`a token that was answered is ${status}`)
    record.exchanges += 1
    user.refresh = body.refresh_token
  }
}

async function change({ gateway, record }, user) {
  while (user.access !== undefined) {
    user.turn += 1
    user.next = `${password} ${user.turn}`
    const body = JSON.stringify({ current_password: user.password, new_password: user.next })
    const answer = await send(gateway.port, 'POST', '/api/v1/auth/password', bearer(user.access), body)
    if (answer.status === 0) return cut(record)
    if (answer.status !== 200) return record.wrong.push(`a change of password ${answer.status}`)
    record.changes += 1
    user.password = user.next
    user.access = JSON.parse(answer.text).access_token
  }
}

async function askForMail({ gateway, record }, user) {
  for (;;) {
    const { status } = await post(gateway.port, 'password/forgot', { email: user.email })
    if (status === 0) return cut(record)
    if (status === 202) user.mailed += 1
    else record.wrong.push(`a mail that was asked for ${status}`)
  }
}

/** Where nothing was answered either is right, and nothing between. */
async function checkAfterKill({ gateway, record, database }, user) {
  if (user.isUnsure) {
    user.isUnsure = false
    const { status, body } = await post(gateway.port, 'refresh', { refresh_token: user.refresh })
    user.refresh = body.refresh_token
    const { rows } = await database.query(
      `select count(*)::integer as good from refresh_tokens t join users u on u.id = t.user_id
        where u.email = $1 and t.revoked = 0`,
      [user.email],
    )
    const [{ good }] = rows
    record.ends.push(status)
    // 200: the lost one must not be good beside the new one. 401: the lost one is the session's only one.
    if ((status !== 200 && status !== 401) || good !== 1)
      record.wrong.push(`an exchange that was cut off: ${status}, ${good} good tokens`)
  }
  if (user.next !== undefined) {
    const tried = []
    for (const one of new Set([user.password, user.next])) {
      const { status } = await post(gateway.port, 'login', { email: user.email, password: one })
      tried.push({ one, status })
    }
    const right = tried.filter(({ status }) => status === 200)
    if (right.length === 1) user.password = right[0].one
    else record.wrong.push(`a change of password that was cut off: ${tried.map(({ status }) => status)}`)
    user.next = undefined
    user.refresh = undefined
  }
}

async function judge({ expect, say, record, users, database }) {
  const missing = async sql => Number((await database.query(sql, [record.answered])).rows[0].n)
  const of = table =>
    `select count(*) as n from unnest($1::text[]) as email where not exists (${table} = email)`
  const [lost, unmailed, untold] = [
    await missing(of('select from users u where u.email')),
    await missing(of("select from mails where kind = 'verify' and address")),
    await missing(of("select from events where type = 'user.created' and body::jsonb->'data'->>'email'")),
  ]
  expect(
    `${kills} times killed: every registration that was answered 201 is in the store, its mail and its event too`,
    record.answered.length > 0 && lost + unmailed + untold === 0,
    `${record.answered.length}; ${lost} lost, ${unmailed} without a mail, ${untold} without an event`,
  )
  const mailed = users.filter(user => user.mailed > 0)
  let fewer = 0
  for (const { email, mailed: due } of mailed) {
    const { rows } = await database.query(
      "select count(*)::integer as n from mails where address = $1 and kind = 'reset'",
      [email],
    )
    if (rows[0].n < due) fewer += 1
  }
  expect(
    'every mail that was asked for and answered 202 is in the store',
    mailed.length > 0 && fewer === 0,
    `${mailed.reduce((sum, user) => sum + user.mailed, 0)} mails, ${fewer} of ${mailed.length} users with fewer`,
  )
  const exchanged = record.ends.filter(status => status === 401).length
  expect(
    'tokens and passwords that were answered are good, and of those that were cut off exactly one, old or new',
    record.wrong.length === 0 && record.exchanges > 0 && record.changes > 0,
    `${record.exchanges} exchanges, ${record.changes} changes of password; ${record.wrong.length} wrong ${[...new Set(record.wrong)].slice(0, 3).join('; ')}`,
  )
  say(
    `${record.cut} requests were cut off; of ${record.ends.length} exchanges ${exchanged} had been stored, whose answer is lost`,
  )
}

function cut(record) {
  record.cut += 1
}
