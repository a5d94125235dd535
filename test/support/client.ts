// Sends requests to a gateway, and creates test users.
import { createHash } from 'node:crypto'
import { createUserStore } from '../../src/users/user-store.ts'
import type { TestGateway } from './gateway.ts'

export interface Answer {
  status: number
  headers: Headers
  /** The parsed JSON body; an empty object if the body is not JSON. */
  body: Record<string, unknown>
  text: string
}

/** Sends one request. A body that is not a string is sent as JSON. */
export async function call(
  base: string,
  method: string,
  path: string,
  { body, headers = {}, token }: { body?: unknown; headers?: Record<string, string>; token?: string } = {},
): Promise<Answer> {
  const response = await fetch(base + path, {
    method,
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: parsed(text) }
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}

export interface TestUser {
  id: number
  email: string
  password: string
  access: string
  refresh: string
}

let made = 0

export const password = 'correct horse battery'
/**
 * The hash of `password` with a low cost, because tests create many users. The verification takes 0.5 ms instead of
 * 20 ms.
 */
export const passwordHash =
  '$argon2id$v=19$m=1024,t=1,p=1$oWfmPAGiZSPywVpT2+NJBA$xbBkv3TWMPacIsMUZ2EdMU9AxN5jAn8jOY7sYQ56ZaE'

/** Creates a user, and logs in as this user. */
export async function newUser(gateway: TestGateway, plan = 'free'): Promise<TestUser> {
  made += 1
  const email = `user${made}.${process.pid}@example.com`
  const created = await createUserStore(gateway.backing.database).create(email, passwordHash)
  if (created.outcome !== 'created') throw new Error(`${email} is in use`)
  const { id } = created
  if (plan !== 'free') await gateway.sql('update users set plan = $2 where id = $1', [id, plan])
  return { id, email, password, ...(await login(gateway.url, email, password)) }
}

/** Stores `key` as an API key of the user. */
export function giveKey(gateway: TestGateway, { id }: { id: number }, key: string) {
  const hash = createHash('sha256').update(key).digest('hex')
  return gateway.sql('insert into api_tokens (user_id, token_hash) values ($1, $2)', [id, hash])
}

export async function login(base: string, email: string, password: string) {
  const { body } = await call(base, 'POST', '/api/v1/auth/login', { body: { email, password } })
  return { access: String(body.access_token), refresh: String(body.refresh_token) }
}
