// Administers users through the admin listener of a gateway that has the embedded database open.
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { HashCount } from '../../accounts/hashes/hash-count-store.ts'
import type { ListedSession } from '../../accounts/session-store.ts'
import { channelHeader } from '../../admin/api/admin-endpoint.ts'
import { countHashes } from '../../admin/api/count-hashes.ts'
import { listPlans, type PlanListing } from '../../admin/api/list-plans.ts'
import { listUsers } from '../../admin/api/list-users.ts'
import { isAllowed } from '../../admin/api/roles.ts'
import { userOperations } from '../../admin/api/users.openapi.ts'
import type { OperatorRole } from '../../config/sections/admin.ts'
import type { Config } from '../../config/sections/schema.ts'
import type { KeyRecord } from '../../identity/api-keys/user-key-store.ts'
import { type OperationOfOperators, successStatus } from '../../openapi/operation.ts'
import type { QuotaUsage } from '../../usage/quota-usage.ts'
import type { Plan, User } from '../../users/user.ts'
import type { UserPatch } from '../../users/user-record-store.ts'
import type { NamedIdentity, UserAdministration, UserFilter } from './administration.ts'
import { UnknownPlan } from './unknown-plan.ts'

/** The error if the admin listener cannot be used. The message is a sentence without its full stop. */
export class AdminUnavailable extends Error {
  override readonly name = 'AdminUnavailable'
}

/**
 * Administers users through the admin listener that the configuration defines. Each call uses the first token whose
 * role allows the call. The methods throw the same errors as this function.
 * @throws AdminUnavailable if the listener cannot be used; an Error if the gateway itself fails
 */
export function createAdminClient(
  admin: Config['admin'],
  file: string,
  tokenVariables: readonly string[] = [],
): UserAdministration {
  if (admin === undefined) throw unusable(`${file} has no admin section`)
  const bearers = [{ token: admin.token, may: 'all' as const }, ...Object.values(admin.tokens)].filter(
    ({ token }) => token !== '',
  )
  if (bearers.length === 0) {
    const [variable] = tokenVariables
    const cause =
      variable === undefined
        ? `${file} has no admin.token`
        : `admin.token in ${file} is empty (set the variable ${variable} to the same value as for the gateway)`
    throw unusable(cause)
  }
  if (admin.listen.port === 0) {
    throw unusable(`admin.listen in ${file} has port 0, so its port is not known`)
  }
  const base = addressOf(admin.listen)
  const notAGateway = `Another program listens at ${base}, which is admin.listen in ${file}`

  /** @returns the body as parsed by `read`, or `undefined` if the user does not exist or the email is taken */
  const request = async <T>(
    operation: OperationOfOperators,
    read: (body: JsonBody) => T,
    { id, key = '', query = '', fields, except }: RequestParts = {},
  ): Promise<T | undefined> => {
    const bearer = bearers.find(
      ({ may }) => may !== except && isAllowed(operation, may, Object.keys(fields ?? {})),
    )
    if (bearer === undefined) {
      throw unusable(`no token in ${file} allows ${operation.id}`)
    }
    const path = operation.path.replace(':id', String(id)).replace(':key', key)
    const url = new URL(path + query, base)
    const { status, code, body } = await sendRequest(operation.method, url, bearer.token, fields)
    if (status === successStatus(operation)) {
      const result = status === 204 ? read({}) : body && read(body)
      if (result === undefined) throw new AdminUnavailable(notAGateway)
      return result
    }
    if (code === 'user_not_found' || code === 'email_taken') return undefined
    if (code === 'plan_invalid') {
      const { plan } = fields as { plan: Plan }
      throw new UnknownPlan(
        plan,
        (await plans()).plans.map(({ name }) => name),
      )
    }
    if (code === 'admin_unauthorized')
      throw new AdminUnavailable(`The gateway at ${base} rejected the admin token of ${file}`)
    if (code === 'admin_disabled')
      throw new AdminUnavailable(`The gateway at ${base} was started without an admin token`)
    if (code === undefined) throw new AdminUnavailable(notAGateway)
    throw new Error(`the admin listener at ${base} responded with ${status} (${code})`)
  }

  const plans = async () => (await request(listPlans, plansOf)) ?? { plans: [], unknown: null }

  const page = async (query: URLSearchParams) =>
    (await request(listUsers, pageOf, { query: `?${query}`.replaceAll('+', '%20') })) ?? {
      users: [],
      next: null,
    }

  async function* list(filter: UserFilter): AsyncGenerator<User[]> {
    const query = new URLSearchParams({ ...filter })
    for (;;) {
      const { users, next } = await page(query)
      yield users
      if (next === null) return
      query.set('cursor', next)
    }
  }

  const update = (id: number, fields: UserPatch) => request(userOperations.change, userOf, { id, fields })

  return {
    list,
    async find(ref) {
      if ('id' in ref) return request(userOperations.show, userOf, ref)
      return (await page(new URLSearchParams(ref))).users[0]
    },
    usage: async ({ id }) =>
      (await request(userOperations.show, ({ usage }) => usage as QuotaUsage[], { id })) ?? [],
    identities: async id =>
      bearers.some(({ may }) => may !== 'billing')
        ? (await request(userOperations.show, identitiesOf, { id, except: 'billing' }))?.identities
        : undefined,
    update,
    sessions: async id => (await request(userOperations.sessions, sessionsOf, { id })) ?? [],
    revokeSessions: id => isDone(request(userOperations.endSessions, () => true, { id })),
    keys: async id => (await request(userOperations.show, keysOf, { id, except: 'billing' })) ?? [],
    revokeKeys: (id, key) =>
      isDone(
        key === undefined
          ? request(userOperations.revokeKeys, () => true, { id })
          : request(userOperations.revokeKey, () => true, { id, key }),
      ),
    async create(email, password, plan) {
      // If no plan is given, the request names the first plan, so that the audit log contains the plan.
      const fields = { email, password, plan: plan ?? (await plans()).plans[0]?.name }
      return (await request(userOperations.create, userOf, { fields })) ?? 'email_in_use'
    },
    setPassword: (id, password) =>
      isDone(request(userOperations.setPassword, () => true, { id, fields: { password } })),
    resetUsage: (id, quota) =>
      request(userOperations.resetUsage, userOf, {
        id,
        ...(quota === undefined ? {} : { fields: { quota } }),
      }),
    export: id => request(userOperations.export, exported => exported, { id }),
    delete: id => isDone(request(userOperations.remove, () => true, { id })),
    plans,
    hashes: async () => (await request(countHashes, hashesOf)) ?? [],
    async *movePlan(from, to) {
      for await (const users of list({ plan: from })) {
        let moved = 0
        for (const { id } of users) if ((await update(id, { plan: to })) !== undefined) moved += 1
        yield moved
      }
    },
  }
}

function unusable(reason: string): AdminUnavailable {
  return new AdminUnavailable(`The command cannot use the admin API of that process, because ${reason}`)
}

interface RequestParts {
  readonly id?: number
  /** The id of an API key. */
  readonly key?: string
  /** The query string, which starts with a question mark. */
  readonly query?: string
  readonly fields?: object
  /** Tokens with this role are not used, because their responses lack the data that `read` needs. */
  readonly except?: OperatorRole
}

async function isDone(answer: Promise<unknown>): Promise<boolean> {
  return (await answer) !== undefined
}

/** Returns the origin of the admin listener, with a loopback address if it listens on every address. */
function addressOf({ host, port }: { host: string; port: number }): string {
  const url = new URL(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  return url.origin
}

interface AdminResponse {
  status: number | undefined
  /** The value of `X-Peage-Error`. */
  code: string | undefined
  /** `undefined` if the body is not a JSON object. */
  body: JsonBody | undefined
}

type JsonBody = Readonly<Record<string, unknown>>

/** Maximum time without a received byte. The gateway responds within two seconds, even if its store is down. */
const idleTimeoutMs = 10_000

/** Does not use `fetch`, which refuses some ports that an operator may choose, for example 6000 and 10080. */
async function sendRequest(method: string, url: URL, token: string, fields?: object): Promise<AdminResponse> {
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, [channelHeader]: 'cli' }
      const request = httpRequest(url, { method, headers, timeout: idleTimeoutMs }, resolve)
      request.on('error', reject)
      request.on('timeout', () => request.destroy(new Error(`no response within ${idleTimeoutMs / 1000} s`)))
      request.end(fields === undefined ? undefined : JSON.stringify(fields))
    })
    const code = [response.headers['x-peage-error']].flat()[0]
    return { status: response.statusCode, code, body: objectOf(await text(response)) }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    throw new AdminUnavailable(`The gateway does not respond at ${url.origin} (${message || code})`)
  }
}

function objectOf(json: string): JsonBody | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? (value as JsonBody) : undefined
  } catch {
    return undefined
  }
}

// The functions below check only whether the response comes from a gateway. They do not validate every member.

function pageOf({ users, next_cursor }: JsonBody): { users: User[]; next: string | null } | undefined {
  if (!Array.isArray(users)) return undefined
  return {
    users: users.flatMap(user => userOf(user) ?? []),
    next: typeof next_cursor === 'string' ? next_cursor : null,
  }
}

function userOf(json: JsonBody): User | undefined {
  const { id, email, plan, is_active, daily_usage, last_usage_date, created_at, email_verified_at } = json
  if (typeof id !== 'number' || typeof email !== 'string') return undefined
  return {
    ...{ id, email, plan, is_active, daily_usage, last_usage_date },
    created_at: new Date(String(created_at)),
    email_verified_at: typeof email_verified_at === 'string' ? new Date(email_verified_at) : null,
  } as User
}

function plansOf({ plans, unknown }: JsonBody): PlanListing | undefined {
  return Array.isArray(plans) ? { plans, unknown: unknown as PlanListing['unknown'] } : undefined
}

function hashesOf({ hashes }: JsonBody): HashCount[] | undefined {
  return Array.isArray(hashes) ? hashes : undefined
}

function sessionsOf({ sessions }: JsonBody): ListedSession[] | undefined {
  if (!Array.isArray(sessions)) return undefined
  return sessions.map(({ created_at, expires_at, ...rest }) => ({
    ...rest,
    created_at: new Date(created_at),
    expires_at: new Date(expires_at),
  }))
}

/** A gateway of an older version sends no identities. */
function identitiesOf({ identities }: JsonBody): { identities?: NamedIdentity[] } {
  if (!Array.isArray(identities)) return {}
  const listed = identities.map(({ created_at, last_used_at, ...rest }) => ({
    ...rest,
    created_at: new Date(created_at),
    last_used_at: dateOf(last_used_at),
  }))
  return { identities: listed }
}

function keysOf({ api_keys }: JsonBody): KeyRecord[] | undefined {
  if (!Array.isArray(api_keys)) return undefined
  return api_keys.map(({ created_at, expires_at, last_used_at, revoked_at, ...rest }) => ({
    ...rest,
    created_at: new Date(created_at),
    expires_at: dateOf(expires_at),
    last_used_at: dateOf(last_used_at),
    revoked_at: dateOf(revoked_at),
  }))
}

function dateOf(time: string | null): Date | null {
  return time === null ? null : new Date(time)
}
