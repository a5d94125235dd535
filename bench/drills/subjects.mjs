// Users whom the drill of revocations takes something from, each in one way, and what they are answered before and after.
import { createHash } from 'node:crypto'
import { Agent, request } from 'node:http'

const agent = new Agent({ keepAlive: true, maxSockets: 512 })

/**
 * @typedef {{ name: string, headers: Record<string, string>, take: () => Promise<unknown>, giveBack: () => Promise<unknown>, before: number, after: number }} Subject
 * @param {number} port of a gateway
 * @param {import('pg').Pool} database
 * @returns {Promise<Subject[]>}
 */
export async function createSubjects(port, database) {
  const [deactivated, changed, keyOwner] = await Promise.all(
    ['deactivated', 'changed', 'key-owner'].map(name => newPro(port, database, name)),
  )
  const key = `peage_drill_${keyOwner.id}`
  const hash = createHash('sha256').update(key).digest('hex')
  await database.query('insert into api_tokens (user_id, token_hash) values ($1, $2)', [keyOwner.id, hash])
  const set = (table, column, value, id) => () =>
    database.query(`update ${table} set ${column} = $1 where ${table === 'users' ? 'id' : 'user_id'} = $2`, [
      value,
      id,
    ])
  return [
    {
      name: 'deactivation',
      headers: deactivated.headers,
      take: set('users', 'is_active', 0, deactivated.id),
      giveBack: set('users', 'is_active', 1, deactivated.id),
      before: 200,
      after: 401,
    },
    {
      name: 'plan change',
      headers: changed.headers,
      take: set('users', 'plan', 'free', changed.id),
      giveBack: set('users', 'plan', 'pro', changed.id),
      before: 200,
      after: 403,
    },
    {
      name: 'key revocation',
      headers: { 'x-api-key': key },
      take: set('api_tokens', 'revoked', 1, keyOwner.id),
      giveBack: set('api_tokens', 'revoked', 0, keyOwner.id),
      before: 200,
      after: 401,
    },
  ]
}

/** A pro user and the header fields of a login. */
export async function newPro(port, database, name) {
  const account = { email: `${name}@drill.test`, password: 'correct horse battery' }
  const { user_id: id } = (await post(port, 'register', account)).body
  await database.query("update users set plan = 'pro' where id = $1", [id])
  const { access_token: token } = (await post(port, 'login', account)).body
  return { id, headers: { authorization: `Bearer ${token}` } }
}

/**
 * @param {number} port
 * @param {string} endpoint below /api/v1/auth
 * @param {object} body
 * @returns {Promise<{ status: number, body: any }>} status 0 where the connection failed
 */
export async function post(port, endpoint, body) {
  const text = JSON.stringify(body)
  const answer = await send(port, 'POST', `/api/v1/auth/${endpoint}`, {}, text)
  return { status: answer.status, body: answer.text === '' ? {} : JSON.parse(answer.text) }
}

/**
 * @param {number} port
 * @param {Record<string, string>} headers
 * @returns {Promise<{ status: number, text: string }>} status 0 where the connection failed
 */
export function ask(port, headers) {
  return send(port, 'GET', '/public/small', headers)
}

export function send(port, method, path, headers, body) {
  return new Promise(resolve => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent })
    sent.on('error', () => resolve({ status: 0, text: '' }))
    sent.on('response', async answer => {
      let text = ''
      try {
        for await (const chunk of answer) text += chunk
        resolve({ status: answer.statusCode, text })
      } catch {
        // It broke off.
        resolve({ status: 0, text: '' })
      }
    })
    sent.end(body)
  })
}
