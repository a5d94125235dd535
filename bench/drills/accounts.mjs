// Accounts of drills that sign in: straight into the database, with a password whose hash takes half a millisecond to verify.
import { post } from './subjects.mjs'

export const password = 'correct horse battery'
const passwordHash =
  '$argon2id$v=19$m=1024,t=1,p=1$oWfmPAGiZSPywVpT2+NJBA$xbBkv3TWMPacIsMUZ2EdMU9AxN5jAn8jOY7sYQ56ZaE'

/** Rate limits of the gateway that drills sign in at: one address is all of their clients. */
export const noRateLimits =
  'rate_limits: { register: 0, login_failures: 0, login_failures_per_address: 0, refresh: 0, bad_keys: 0 }'

/**
 * Users of plan pro.
 * @param {import('pg').Pool} database
 * @param {number} count
 * @returns {Promise<string[]>} their emails
 */
export async function createAccounts(database, count) {
  const { rows } = await database.query(
    `insert into users (email, password_hash, plan)
     select 'account' || gen_random_uuid() || '@drill.test', $2, 'pro' from generate_series(1, $1) i returning email`,
    [count, passwordHash],
  )
  return rows.map(({ email }) => email)
}

/**
 * @param {number} port of a gateway
 * @param {string} email
 * @returns {Promise<{ access: string, refresh: string }>}
 */
export async function login(port, email) {
  return pairOf(await post(port, 'login', { email, password }))
}

/** @param {number} port @param {string} token a refresh token @returns {Promise<{ access: string, refresh: string }>} */
export async function refresh(port, token) {
  return pairOf(await post(port, 'refresh', { refresh_token: token }))
}

/** @param {number} port @param {string} token a refresh token */
export async function logout(port, token) {
  const { status } = await post(port, 'logout', { refresh_token: token })
  if (status !== 200) throw new Error(`logout answered ${status}`)
}

function pairOf({ status, body }) {
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)} in the place of a token pair`)
  return { access: body.access_token, refresh: body.refresh_token }
}

/** @param {string} token @returns {{ authorization: string }} */
export function bearer(token) {
  return { authorization: `Bearer ${token}` }
}

/** @param {string} token a JWT @returns {string | undefined} the id of its session */
export function sessionOf(token) {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sid
}
