// The accounts that ask: made at a gateway as clients and operators make them.
import { strict as assert } from 'node:assert'

/**
 * @typedef {object} Caller
 * @property {string} id
 * @property {string} plan
 * @property {string} token an access token
 *
 * @typedef {object} Callers
 * @property {Admin} admin
 * @property {Caller} free
 * @property {Caller} premium
 * @property {Caller & { key: string }} pro with an API key
 * @property {Caller} inactive whose token was good
 * @property {Caller[]} crowd of free users
 *
 * @typedef {{ port: number, admin: number, adminToken: string }} Admin the ports of a gateway
 */

/**
 * @param {Admin} admin
 * @param {number} crowded how many more free users
 * @returns {Promise<Callers>}
 */
export async function createCallers(admin, crowded) {
  const free = await createCaller(admin, 'free')
  const premium = await createCaller(admin, 'premium')
  const pro = await createCaller(admin, 'pro')
  const inactive = await createCaller(admin, 'premium', 'inactive')
  await change(admin, inactive.id, { is_active: 0 })
  const { api_token: key } = await send(`http://127.0.0.1:${admin.port}/api/v1/user/api-token`, {
    status: 201,
    method: 'POST',
    headers: { authorization: `Bearer ${pro.token}` },
  })
  const crowd = []
  for (let at = 0; at < crowded; at += 1) crowd.push(await createCaller(admin, 'free', `free-${at}`))
  return { admin, free, premium, pro: { ...pro, key }, inactive, crowd }
}

/**
 * @param {Admin} admin
 * @param {string} id
 */
export function readUser({ admin, adminToken }, id) {
  return send(`http://127.0.0.1:${admin}/admin/v1/users/${id}`, {
    status: 200,
    method: 'GET',
    headers: { authorization: `Bearer ${adminToken}` },
  })
}

/**
 * @param {Admin} admin
 * @param {string} plan
 * @returns {Promise<Caller>}
 */
async function createCaller(admin, plan, name = plan) {
  const accounts = `http://127.0.0.1:${admin.port}/api/v1/auth`
  const credentials = { email: `${name}@bench.example`, password: 'a password of the benchmark' }
  const { user_id } = await send(`${accounts}/register`, { status: 201, method: 'POST', body: credentials })
  const id = String(user_id)
  if (plan !== 'free') await change(admin, id, { plan })
  const { access_token } = await send(`${accounts}/login`, { status: 200, method: 'POST', body: credentials })
  return { id, plan, token: access_token }
}

/**
 * @param {Admin} admin
 * @param {string} id
 * @param {Record<string, unknown>} body
 */
function change({ admin, adminToken }, id, body) {
  return send(`http://127.0.0.1:${admin}/admin/v1/users/${id}`, {
    status: 200,
    method: 'PATCH',
    headers: { authorization: `Bearer ${adminToken}` },
    body,
  })
}

/**
 * @param {string} url
 * @param {{ status: number, method: string, headers?: Record<string, string>, body?: unknown }} sending
 * @returns {Promise<any>} what was answered
 */
async function send(url, { status, method, headers = {}, body }) {
  const answer = await fetch(url, {
    method,
    headers,
    signal: AbortSignal.timeout(30_000),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  assert.equal(answer.status, status, `${method} ${url}: ${text}`)
  return JSON.parse(text)
}
