// Two versions run side by side. Accounts, daily uses, the built-in plans, API keys and webhooks work at both versions.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import { first as certificate } from '../support/certificates.ts'
import { password } from '../support/client.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { bearer, login } from './accounts.ts'
import { emit } from './alerts.ts'
import { adminToken } from './replicas.ts'
import { post, send } from './subjects.ts'
import type { VersionedReplica } from './upgrade-cases.ts'
import type { Watch } from './watch.ts'

const rounds = 10
/**
 * The maximum time in milliseconds until a replica notices a change by another process. Includes a margin for a busy
 * machine.
 */
const visibleMs = 2_000

/** The environment variables, settings and routes with which the replicas must be started. */
export const plansSetting = {
  env: { NODE_EXTRA_CA_CERTS: certificate.files.cert },
  settings: 'webhooks: { allow_private_networks: true }\nlimits: { free_daily: 1 }',
  routes: `  - { path: /daily/*, rewrite: /public/*, upstream: service, free_daily: true }
  - { path: /paid/*, rewrite: /public/*, upstream: service, plans: [premium, pro] }
  - { path: /pro/*, rewrite: /public/*, upstream: service, plans: [pro] }
`,
}

export async function judgePlans(
  replicas: readonly [VersionedReplica, VersionedReplica],
  database: Pool,
  title: string,
  expect: Watch['expect'],
): Promise<void> {
  const received: string[] = []
  const receiver = await startReceiver(certificate, (request, response) => {
    received.push(request.url ?? '')
    response.end()
    request.resume()
  })
  const [one, other] = replicas
  const wrong: string[] = []
  try {
    for (let round = 0; round < rounds; round += 1) {
      await tryAccount([one, other], { database, receiver, received, wrong })
      await tryAccount([other, one], { database, receiver, received, wrong })
    }
    for (const { admin, version } of replicas) {
      const { status } = await fetch(`http://127.0.0.1:${admin}/readyz`)
      if (status !== 200) wrong.push(`/readyz of the ${version} version: ${status}`)
    }
  } finally {
    await receiver.close()
  }
  expect(
    `${title}, side by side: registrations, daily uses, built-in plans, keys and webhooks work at both versions`,
    wrong.length === 0,
    `${2 * rounds} accounts, ${wrong.length} wrong: ${[...new Set(wrong)].join('; ')}`,
  )
}

interface Context {
  readonly database: Pool
  readonly receiver: Receiver
  /** The URL paths of the webhook deliveries that have arrived. */
  readonly received: readonly string[]
  readonly wrong: string[]
}

/** Uses one account at both replicas in turn. */
async function tryAccount(
  [one, other]: readonly [VersionedReplica, VersionedReplica],
  { database, receiver, received, wrong }: Context,
): Promise<void> {
  const check = (what: string, { version }: VersionedReplica, actual: unknown, wanted: unknown) => {
    if (actual !== wanted) wrong.push(`${what} at the ${version} version: ${actual} instead of ${wanted}`)
  }
  const email = `upgrade${Math.random()}@drill.test`
  const registered = await post(one.port, 'register', { email, password })
  check('registration', one, registered.status, 201)
  const id = Number(registered.body.user_id)
  const { rows } = await database.query<{ plan: string }>('select plan from users where id = $1', [id])
  check('plan of the account', one, rows[0]?.plan, 'free')
  const { access } = await login(other.port, email)
  const headers = bearer(access)
  const get = async ({ port }: VersionedReplica, path: string, as: Record<string, string> = headers) =>
    (await send(port, 'GET', `${path}/small`, as)).status
  const untilIs = async (
    what: string,
    replica: VersionedReplica,
    wanted: number,
    ask: () => Promise<number>,
  ) => {
    const begun = performance.now()
    let status = await ask()
    while (status !== wanted && performance.now() - begun < visibleMs) {
      await sleep(5)
      status = await ask()
    }
    check(what, replica, status, wanted)
  }
  const admin = async ({ admin: port }: VersionedReplica, method: string, body?: object) =>
    (
      await fetch(`http://127.0.0.1:${port}/admin/v1/users/${id}`, {
        method,
        headers: { authorization: `Bearer ${adminToken}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    ).status

  check('first daily use', one, await get(one, '/daily'), 200)
  check('second daily use', other, await get(other, '/daily'), 429)
  check('route for paying users', one, await get(one, '/paid'), 403)
  check('change to premium', one, await admin(one, 'PATCH', { plan: 'premium' }), 200)
  check('route for paying users', one, await get(one, '/paid'), 200)
  await untilIs('plan premium', other, 200, () => get(other, '/paid'))
  check('change to pro', other, await admin(other, 'PATCH', { plan: 'pro' }), 200)
  await untilIs('plan pro', one, 200, () => get(one, '/pro'))
  await changeQuotas(database, id)

  const made = await send(one.port, 'POST', '/api/v1/user/api-token', headers)
  check('API key', one, made.status, 201)
  const key = { 'x-api-key': String((JSON.parse(made.text) as { api_token?: string }).api_token) }
  for (const replica of [one, other])
    check('request with the key', replica, await get(replica, '/pro', key), 200)
  for (const maker of [one, other].filter(({ version }) => version === 'new'))
    await tryNamedKey(maker, [one, other], headers, check)
  const path = `/${id}`
  const url = JSON.stringify({ url: `https://localhost:${receiver.port}${path}` })
  check('webhook', one, (await send(one.port, 'POST', '/api/v1/user/webhook', headers, url)).status, 201)
  check('alert', other, (await emit(other.admin, { type: 'a.b', data: {}, user_id: id })).deliveries, 1)
  await untilIs('deliveries', other, 1, async () => received.filter(each => each === path).length)

  await database.query("update users set plan = 'free' where id = $1", [id])
  for (const replica of [one, other])
    await untilIs('plan free', replica, 403, () => get(replica, '/pro', key))
  check('deletion', one, await admin(one, 'DELETE'), 204)
  await untilIs('deleted account', other, 401, () => get(other, '/public'))
}

/** Creates a named API key at the new version. The old version must refuse this key on every path. */
async function tryNamedKey(
  maker: VersionedReplica,
  replicas: readonly VersionedReplica[],
  owner: Record<string, string>,
  check: (what: string, replica: VersionedReplica, actual: unknown, wanted: unknown) => void,
): Promise<void> {
  const made = await send(maker.port, 'POST', '/api/v1/auth/keys', owner, JSON.stringify({ name: 'CI' }))
  check('named key', maker, made.status, 201)
  const key = { 'x-api-key': String((JSON.parse(made.text) as { key?: string }).key) }
  for (const replica of replicas) {
    const isNew = replica.version === 'new'
    for (const [method, path, wanted] of [
      ['GET', '/pro/small', isNew ? 200 : 401],
      ['GET', '/api/v1/auth/usage', isNew ? 200 : 401],
      ['POST', '/api/v1/user/api-token', isNew ? 403 : 401],
      ['DELETE', '/api/v1/user/api-token', isNew ? 403 : 401],
    ] as const) {
      const { status } = await send(replica.port, method, path, key)
      check(`${method} ${path} with a named key`, replica, status, wanted)
    }
  }
}

/**
 * Changes the table `quota_usage` in every way, so that Postgres sends every kind of notification about it. The
 * previous version must ignore these notifications.
 */
async function changeQuotas(database: Pool, id: number): Promise<void> {
  await database.query(
    "insert into quota_usage values ($1, 'exports', 'day', (now() at time zone 'utc')::date, 5)",
    [id],
  )
  await database.query('update quota_usage set used = 4 where user_id = $1', [id])
  await database.query('update quota_usage set period_start = period_start - 1 where user_id = $1', [id])
  await database.query('update quota_usage set period_start = period_start + 1 where user_id = $1', [id])
  await database.query('delete from quota_usage where user_id = $1', [id])
  await database.query('truncate quota_usage')
  // When the account is deleted later, Postgres must delete this row too.
  await database.query(
    "insert into quota_usage values ($1, 'exports', 'month', (now() at time zone 'utc')::date, 1)",
    [id],
  )
}
