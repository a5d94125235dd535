// Users change passwords, end sessions and leave on three replicas at one time: one wins, and nothing is left of who left.
import { setTimeout as sleep } from 'node:timers/promises'
import { bearer, createAccounts, login, noRateLimits, password } from './accounts.mjs'
import { openStage } from './replicas.mjs'
import { random, setting } from './settings.mjs'
import { startUpstream } from './stage.mjs'
import { post, send } from './subjects.mjs'

const tries = setting('ACCOUNT_TRIES', 2_000, 200)
/** Users at one time. */
const lanes = 4
/** Changes of one user's password at one time. */
const rivals = 8

/** @type {import('./main.mjs').Drill} */
export async function accountRaces({ expect }) {
  const upstream = await startUpstream()
  const stage = await openStage()
  try {
    const setting = {
      settings: `auth: { ${noRateLimits}, hashing: { queue: 1000, wait: 30s } }\naccount: { deletion: true }\nlimits: { free_daily: 1000000 }`,
      routing: `upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'], connections_per_client: 128 } }
routes: [{ path: /public/small, upstream: service, free_daily: true }]`,
    }
    const ports = []
    for (let i = 0; i < 3; i += 1) ports.push((await stage.start(setting)).port)
    const place = { ports, database: stage.database }
    await passwordChanges(place, expect)
    await endings(place, expect)
    await deletions(place, expect)
    await twoDeletions(place, expect)
  } finally {
    await stage.stop()
    await upstream.stop()
  }
}

async function passwordChanges(place, expect) {
  const rounds = await race(place, Math.ceil(tries / rivals), async (user, anyPort) => {
    const change = n =>
      call(anyPort(), 'POST', '/password', user, {
        current_password: password,
        new_password: `${password} ${n}`,
      })
    const answers = await Promise.all(Array.from({ length: rivals }, (_, n) => change(n)))
    const sessions = await activeSessions(place, user)
    return { statuses: answers.map(({ status }) => status), sessions }
  })
  const wins = rounds.map(({ statuses }) => statuses.filter(status => status === 200).length)
  expect(
    `${rounds.length * rivals} changes of password, ${rivals} at one time with one current password: one of them wins`,
    wins.every(count => count === 1) &&
      rounds.every(({ statuses }) => statuses.every(s => s === 200 || s === 401)),
    tell(rounds.flatMap(({ statuses }) => statuses)),
  )
  expect(
    'one session is left, the winner’s',
    rounds.every(({ sessions }) => sessions === 1),
    `${rounds.filter(({ sessions }) => sessions === 1).length} of ${rounds.length}`,
  )
}

async function endings(place, expect) {
  const rounds = await race(place, tries, async (user, anyPort) => {
    const [one, two, three] = place.ports
    const others = [await signIn(one, user.email), await signIn(two, user.email)]
    const rotations = [...others, user].map(async ({ refresh }) => {
      await pause()
      return post(anyPort(), 'refresh', { refresh_token: refresh })
    })
    await pause()
    const ended = await call(three, 'DELETE', '/sessions', user, { all: true })
    const rotated = await Promise.all(rotations)
    const successors = rotated.flatMap(({ status, body }) => (status === 200 ? [body.refresh_token] : []))
    const later = await Promise.all(
      successors.map(token => post(anyPort(), 'refresh', { refresh_token: token })),
    )
    return {
      statuses: [ended.status],
      rotated: successors.length,
      alive: later.filter(({ status }) => status !== 401).length,
      sessions: await activeSessions(place, user),
    }
  })
  const sum = field => rounds.reduce((total, round) => total + round[field], 0)
  expect(
    `${rounds.length} times all sessions ended, with rotations of three under way: none of their refresh tokens works after it`,
    sum('alive') === 0 && sum('sessions') === 0,
    `${sum('alive')} of ${sum('rotated')} that were rotated meanwhile, ${sum('sessions')} sessions left`,
  )
  expect(
    'each is answered 200',
    rounds.every(({ statuses }) => statuses[0] === 200),
    tell(rounds.flatMap(r => r.statuses)),
  )
}

async function deletions(place, expect) {
  const rounds = await race(place, tries, async (user, anyPort) => {
    const rivalsOf = [
      () => post(anyPort(), 'login', { email: user.email, password }),
      () => post(anyPort(), 'refresh', { refresh_token: user.refresh }),
      () => send(anyPort(), 'GET', '/public/small', bearer(user.access)),
      () => send(anyPort(), 'POST', '/api/v1/user/api-token', bearer(user.access)),
    ]
    const answers = await Promise.all([
      pause().then(() => call(anyPort(), 'DELETE', '/account', user, { current_password: password })),
      ...rivalsOf.map(async rival => {
        await pause()
        return rival()
      }),
    ])
    return {
      statuses: answers.map(({ status }) => status),
      deleted: answers[0].status,
      left: await leftOf(place, user),
    }
  })
  expect(
    `${rounds.length} deletions against a login, a refresh, a counted use and a new API token each: nothing of the user is left`,
    rounds.every(({ left, deleted }) => left === 0 && deleted === 200),
    `${rounds.filter(({ deleted }) => deleted === 200).length} deleted, ${rounds.reduce((sum, { left }) => sum + left, 0)} rows left`,
  )
  const statuses = rounds.flatMap(round => round.statuses)
  expect(
    'none of them is answered 500',
    statuses.every(s => s > 0 && s !== 500),
    tell(statuses),
  )
}

async function twoDeletions(place, expect) {
  const rounds = await race(place, tries, async (user, anyPort) => {
    const leave = () => call(anyPort(), 'DELETE', '/account', user, { current_password: password })
    const answers = await Promise.all([leave(), leave()])
    return { statuses: answers.map(({ status }) => status).sort(), left: await leftOf(place, user) }
  })
  expect(
    `${rounds.length} times two deletions at one time: one is 200, the other 401, nothing is left`,
    rounds.every(({ statuses: [a, b], left }) => a === 200 && b === 401 && left === 0),
    tell(rounds.flatMap(({ statuses }) => statuses)),
  )
}

/** Plays `count` rounds, each with a user of its own that is signed in, some at one time. */
async function race({ ports, database }, count, play) {
  const emails = await createAccounts(database, count)
  const anyPort = () => ports[Math.floor(random() * ports.length)]
  const rounds = []
  const lane = async () => {
    for (let email = emails.pop(); email !== undefined; email = emails.pop()) {
      const pair = await signIn(anyPort(), email)
      const { sub } = JSON.parse(Buffer.from(pair.access.split('.')[1], 'base64url').toString())
      rounds.push(await play({ email, id: Number(sub), ...pair }, anyPort))
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return rounds
}

/** Tries again where the machine has too much to do: what is raced comes after it. */
async function signIn(port, email) {
  for (let left = 20; ; left -= 1) {
    try {
      return await login(port, email)
    } catch (error) {
      if (left === 0) throw error
      await sleep(100)
    }
  }
}

function call(port, method, path, { access }, body) {
  const text = JSON.stringify(body)
  // Node frames no body of a DELETE by itself.
  const headers = { ...bearer(access), 'content-length': String(Buffer.byteLength(text)) }
  return send(port, method, `/api/v1/auth${path}`, headers, text)
}

/** Up to 4 ms: what is raced begins in another order each time. */
function pause() {
  return sleep(random() * 4)
}

async function activeSessions({ database }, { id }) {
  const { rows } = await database.query(
    `select count(*)::integer as n from refresh_tokens t join users u on u.id = t.user_id
      where u.id = $1 and t.revoked = 0 and t.session_epoch = u.session_epoch`,
    [id],
  )
  return rows[0].n
}

async function leftOf({ database }, { id }) {
  const tables = ['subscriptions', 'refresh_tokens', 'api_tokens', 'webhooks', 'account_codes', 'mails']
  const counts = tables.map(table => `(select count(*) from ${table} where user_id = $1)`)
  const { rows } = await database.query(
    `select (select count(*) from users where id = $1)::integer + (${counts.join(' + ')})::integer as n`,
    [id],
  )
  return rows[0].n
}

function tell(statuses) {
  const counts = new Map()
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([status, count]) => `${status}: ${count}`)
    .join(', ')
}
