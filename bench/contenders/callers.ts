// Creates the users that send the requests of the benchmark, with the account API and the admin API of a gateway.
import { strict as assert } from 'node:assert'

export interface Caller {
  readonly id: string
  readonly plan: string
  /** An access token. */
  readonly token: string
}

export interface Callers {
  readonly admin: Admin
  readonly free: Caller
  readonly premium: Caller
  /** A user on plan `pro`. `key` is the API key that `POST /api/v1/user/api-token` created. */
  readonly pro: Caller & { readonly key: string }
  /** A user who was deactivated after the token was issued. */
  readonly inactive: Caller
  /** More users on plan `free`. */
  readonly crowd: readonly Caller[]
}

/** The ports of a gateway and its admin token. `port` is for clients, `admin` is for operators. */
export interface Admin {
  readonly port: number
  readonly admin: number
  readonly adminToken: string
}

/** @param crowded the number of users in `crowd` */
export async function createCallers(admin: Admin, crowded: number): Promise<Callers> {
  const free = await createCaller(admin, 'free')
  const premium = await createCaller(admin, 'premium')
  const pro = await createCaller(admin, 'pro')
  const inactive = await createCaller(admin, 'premium', 'inactive')
  await change(admin, inactive.id, { is_active: 0 })
  const { api_token: key } = await send<{ api_token: string }>(
    `http://127.0.0.1:${admin.port}/api/v1/user/api-token`,
    { status: 201, method: 'POST', headers: { authorization: `Bearer ${pro.token}` } },
  )
  const crowd = []
  for (let at = 0; at < crowded; at += 1) crowd.push(await createCaller(admin, 'free', `free-${at}`))
  return { admin, free, premium, pro: { ...pro, key }, inactive, crowd }
}

export interface NewKey {
  readonly id: string
  readonly key: string
}

/**
 * Creates an API key.
 * @param token an access token of the user
 * @param scopes the scopes of the key; undefined for a key that is not limited to scopes
 */
export function createKey({ port }: Admin, token: string, scopes?: readonly string[]): Promise<NewKey> {
  return send<NewKey>(`http://127.0.0.1:${port}/api/v1/auth/keys`, {
    status: 201,
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: { name: 'benchmark', scopes },
  })
}

/** Returns how many daily uses the gateway has counted today for the user with this ID. */
export async function readUses(admin: Admin, id: string): Promise<number> {
  const user = await send<{ daily_usage: number }>(userUrl(admin, id), {
    status: 200,
    method: 'GET',
    headers: { authorization: `Bearer ${admin.adminToken}` },
  })
  return user.daily_usage
}

/**
 * Returns how many uses of `quota` the gateway has counted for a user in the current period.
 * @param token an access token of the user
 */
export async function readQuotaUses({ port }: Admin, token: string, quota: string): Promise<number> {
  const { quotas } = await send<{ quotas: { name: string; used: number }[] }>(
    `http://127.0.0.1:${port}/api/v1/auth/usage`,
    { status: 200, method: 'GET', headers: { authorization: `Bearer ${token}` } },
  )
  return quotas.find(({ name }) => name === quota)?.used ?? Number.NaN
}

async function createCaller(admin: Admin, plan: string, name: string = plan): Promise<Caller> {
  const accounts = `http://127.0.0.1:${admin.port}/api/v1/auth`
  const body = { email: `${name}@bench.example`, password: 'a password of the benchmark' }
  const { user_id } = await send<{ user_id: number }>(`${accounts}/register`, {
    status: 201,
    method: 'POST',
    body,
  })
  const id = String(user_id)
  if (plan !== 'free') await change(admin, id, { plan })
  const { access_token: token } = await send<{ access_token: string }>(`${accounts}/login`, {
    status: 200,
    method: 'POST',
    body,
  })
  return { id, plan, token }
}

function change(admin: Admin, id: string, body: Readonly<Record<string, unknown>>): Promise<unknown> {
  const headers = { authorization: `Bearer ${admin.adminToken}` }
  return send(userUrl(admin, id), { status: 200, method: 'PATCH', headers, body })
}

function userUrl({ admin }: Admin, id: string): string {
  return `http://127.0.0.1:${admin}/admin/v1/users/${id}`
}

interface Call {
  /** The expected status code. */
  readonly status: number
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

async function send<Answer>(url: string, { status, method, headers = {}, body }: Call): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers,
    signal: AbortSignal.timeout(30_000),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  assert.equal(response.status, status, `${method} ${url}: ${text}`)
  return JSON.parse(text)
}
