// Creates accounts in the database and logs in with them. Their password hash is cheap to verify. The gateway needs
// only half a millisecond for this.
import type { Pool } from 'pg'
import { password, passwordHash } from '../support/client.ts'
import { type JsonAnswer, post } from './subjects.ts'

/** Settings without rate limits, because all clients of a drill have the same address. */
export const noRateLimits =
  'rate_limits: { register: 0, login_failures: 0, login_failures_per_address: 0, refresh: 0, bad_keys: 0 }'

export interface TokenPair {
  readonly access: string
  readonly refresh: string
}

/** Creates users with the plan `pro`. @returns their emails */
export async function createAccounts(database: Pool, count: number): Promise<string[]> {
  const { rows } = await database.query<{ email: string }>(
    `insert into users (email, password_hash, plan)
     select 'account' || gen_random_uuid() || '@drill.test', $2, 'pro' from generate_series(1, $1) i returning email`,
    [count, passwordHash],
  )
  return rows.map(({ email }) => email)
}

/** Logs in. @param port the port of a gateway @returns the token pair */
export async function login(port: number, email: string): Promise<TokenPair> {
  return pairOf(await post(port, 'login', { email, password }))
}

/** @param token a refresh token */
export async function refresh(port: number, token: string): Promise<TokenPair> {
  return pairOf(await post(port, 'refresh', { refresh_token: token }))
}

/** @param token a refresh token */
export async function logout(port: number, token: string): Promise<void> {
  const { status } = await post(port, 'logout', { refresh_token: token })
  if (status !== 200) throw new Error(`the logout failed with ${status}`)
}

/** @throws Error if the response contains no token pair */
export function pairOf({ status, body }: JsonAnswer): TokenPair {
  if (status !== 200) throw new Error(`no token pair, but ${status} ${JSON.stringify(body)}`)
  return { access: String(body.access_token), refresh: String(body.refresh_token) }
}

export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` }
}
