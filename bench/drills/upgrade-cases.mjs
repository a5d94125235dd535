// What must hold while two versions serve side by side: wherever a session was born, exchanged and ended, it has ended.
import { createAccounts, login, logout, refresh } from './accounts.mjs'
import { adminToken } from './replicas.mjs'
import { post } from './subjects.mjs'

const races = 100

/**
 * @param {{ version: string, port: number, admin: number }[]} replicas one of each version
 * @param {import('pg').Pool} database
 * @param {{ title: string, expect: import('./main.mjs').Watch['expect'] }} watch
 */
export async function judgeSideBySide(replicas, database, { title, expect }) {
  const users = await newUsers(database)
  const places = replicas.flatMap(born => replicas.map(exchanged => ({ born, exchanged })))
  const tried = { cases: 0, wrong: [] }
  for (const { born, exchanged } of places) {
    for (const ended of replicas) {
      for (const [how, end] of Object.entries(ends)) {
        if (how === 'its id' && ended.version === 'old') continue
        for (const asked of replicas) {
          const user = users()
          const first = await login(born.port, user.email)
          const pair = await refresh(exchanged.port, first.refresh)
          const isUsedUp = (await status(asked, first.refresh)) === 401
          await end(ended, { ...user, ...pair })
          const isEnded = (await status(asked, pair.refresh)) === 401
          tried.cases += 1
          if (!isUsedUp || !isEnded)
            tried.wrong.push(
              `born ${born.version}, exchanged ${exchanged.version}, ${how} at ${ended.version}`,
            )
        }
      }
    }
  }
  expect(
    `${title}, side by side: a token that was used, and one whose session was ended, is refused by both`,
    tried.wrong.length === 0,
    `${tried.wrong.length} of ${tried.cases} let through ${[...new Set(tried.wrong)].join('; ')}`,
  )
  expect(
    `${title}, side by side: of 4 uses of one token at once over both, one gets a pair`,
    (await raceUses(replicas, users)) === races,
    `${races} times`,
  )
  const survived = await raceEnds(replicas, users)
  expect(
    `${title}, side by side: ending all of a user's sessions ends those under exchange at either`,
    survived === 0,
    `${survived} of ${races} let through`,
  )
}

const ends = {
  logout: (replica, { refresh: token }) => logout(replica.port, token),
  'all of them': (replica, { id }) => endAll(replica, id),
  'its id': async ({ port }, { access }) => {
    const headers = { authorization: `Bearer ${access}` }
    const url = `http://127.0.0.1:${port}/api/v1/auth/sessions`
    const { sessions } = await (await fetch(url, { headers })).json()
    for (const { id } of sessions) await fetch(`${url}/${id}`, { method: 'DELETE', headers })
  },
}

async function newUsers(database) {
  const emails = await createAccounts(database, 500)
  const { rows } = await database.query('select id, email from users where email = any($1)', [emails])
  return () => rows.pop() ?? { id: 0, email: '' }
}

async function endAll({ admin }, id) {
  const { status: answered } = await fetch(`http://127.0.0.1:${admin}/admin/v1/users/${id}/sessions`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${adminToken}` },
  })
  if (answered !== 200) throw new Error(`ending all sessions was answered ${answered}`)
}

async function status({ port }, token) {
  return (await post(port, 'refresh', { refresh_token: token })).status
}

/** @returns how often exactly one won */
async function raceUses(replicas, users) {
  let fair = 0
  for (let turn = 0; turn < races; turn += 1) {
    const { refresh: token } = await login(replicas[turn % 2].port, users().email)
    const answers = await Promise.all([0, 1, 0, 1].map(at => status(replicas[at], token)))
    if (answers.filter(answer => answer === 200).length === 1) fair += 1
  }
  return fair
}

/** @returns how many sessions outlived it */
async function raceEnds(replicas, users) {
  let survived = 0
  for (let turn = 0; turn < races; turn += 1) {
    const { id, email } = users()
    const [one, other] = turn % 2 === 0 ? replicas : replicas.toReversed()
    const { refresh: token } = await login(one.port, email)
    const [exchanged] = await Promise.all([
      post(one.port, 'refresh', { refresh_token: token }),
      endAll(other, id),
    ])
    const last = exchanged.status === 200 ? exchanged.body.refresh_token : token
    for (const replica of replicas) if ((await status(replica, last)) !== 401) survived += 1
  }
  return survived
}
