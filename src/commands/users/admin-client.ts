// The same administration through the admin listener of a gateway that has the embedded database (CONTRACT §7).
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Session } from '../../accounts/session-store.ts'
import type { Config } from '../../config/schema/schema.ts'
import type { User } from '../../users/user.ts'
import type { UserAdministration } from './administration.ts'

/** There is no way through the admin listener; the message goes on after "…, which ". */
export class AdminUnavailable extends Error {
  override readonly name = 'AdminUnavailable'
}

/**
 * Administers through the listener that the configuration describes.
 * @param file the configuration's name, for messages
 * @throws AdminUnavailable here or from any method; an Error where the gateway itself fails
 */
export function createAdminClient(admin: Config['admin'], file: string): UserAdministration {
  if (admin === undefined) throw new AdminUnavailable(`cannot be asked, as ${file} has no admin section`)
  const token = [admin.token, ...Object.values(admin.tokens)].find(configured => configured !== '')
  if (token === undefined) throw new AdminUnavailable(`cannot be asked, as ${file} has no admin.token`)
  if (admin.listen.port === 0) {
    throw new AdminUnavailable(`cannot be asked, as admin.listen in ${file} leaves the port to the system`)
  }
  const base = addressOf(admin.listen)
  const notAGateway = `does not answer at ${base}, where something else listens`

  /** What `read` makes of the answer, or nothing where there is no such user. */
  const request = async <T>(
    [method, path]: readonly [method: string, path: string],
    read: (body: JsonBody) => T,
    patch?: object,
  ): Promise<T | undefined> => {
    const { status, code, body } = await sendRequest(method, new URL(path, base), token, patch)
    if (status === 200) {
      const result = body === undefined ? undefined : read(body)
      if (result === undefined) throw new AdminUnavailable(notAGateway)
      return result
    }
    if (code === 'user_not_found') return undefined
    if (code === 'admin_unauthorized')
      throw new AdminUnavailable(`does not take the token that ${file} has for its admin listener at ${base}`)
    if (code === 'admin_disabled')
      throw new AdminUnavailable(`was started without a token for its admin listener at ${base}`)
    if (code === undefined) throw new AdminUnavailable(notAGateway)
    throw new Error(`the gateway's admin listener at ${base} answered ${status} (${code})`)
  }

  const page = async (query: URLSearchParams) =>
    (await request(['GET', `/admin/v1/users?${query}`], pageOf)) ?? { users: [], next: null }

  return {
    async *list(filter) {
      const query = new URLSearchParams({ ...filter })
      for (;;) {
        const { users, next } = await page(query)
        yield users
        if (next === null) return
        query.set('cursor', next)
      }
    },
    async find(ref) {
      if ('id' in ref) return request(['GET', `/admin/v1/users/${ref.id}`], userOf)
      return (await page(new URLSearchParams(ref))).users[0]
    },
    update: (id, patch) => request(['PATCH', `/admin/v1/users/${id}`], userOf, patch),
    sessions: async id => (await request(['GET', `/admin/v1/users/${id}/sessions`], sessionsOf)) ?? [],
    revokeSessions: async id =>
      (await request(['DELETE', `/admin/v1/users/${id}/sessions`], () => true)) !== undefined,
  }
}

/** Where "every address" is listened on, loopback is one of them. */
function addressOf({ host, port }: { host: string; port: number }): string {
  const url = new URL(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  return url.origin
}

interface AdminResponse {
  status: number | undefined
  /** `X-Peage-Error` (CONTRACT §10). */
  code: string | undefined
  /** Absent where it is not a JSON object. */
  body: JsonBody | undefined
}

/** As JSON has it. */
type JsonBody = Readonly<Record<string, unknown>>

/** Milliseconds without a byte. The gateway itself answers within two seconds, its store down or not. */
const idleTimeoutMs = 10_000

/** `fetch` would refuse some ports that an operator may well choose, 6000 and 10080 among them. */
async function sendRequest(method: string, url: URL, token: string, patch?: object): Promise<AdminResponse> {
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` }
      const request = httpRequest(url, { method, headers, timeout: idleTimeoutMs }, resolve)
      request.on('error', reject)
      request.on('timeout', () => request.destroy(new Error(`no answer for ${idleTimeoutMs / 1000} s`)))
      request.end(patch === undefined ? undefined : JSON.stringify(patch))
    })
    const code = [response.headers['x-peage-error']].flat()[0]
    return { status: response.statusCode, code, body: objectOf(await text(response)) }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    throw new AdminUnavailable(`does not answer at ${url.origin} (${message || code})`)
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

// Whether it is ours is all that is asked: the gateway's own fields are not checked a second time.

function pageOf({ users, next_cursor }: JsonBody): { users: User[]; next: string | null } | undefined {
  if (!Array.isArray(users)) return undefined
  return {
    users: users.flatMap(user => userOf(user) ?? []),
    next: typeof next_cursor === 'string' ? next_cursor : null,
  }
}

function userOf(json: JsonBody): User | undefined {
  if (typeof json.id !== 'number' || typeof json.email !== 'string') return undefined
  return { ...json, created_at: new Date(String(json.created_at)) } as User
}

function sessionsOf({ sessions }: JsonBody): Session[] | undefined {
  if (!Array.isArray(sessions)) return undefined
  return sessions.map(({ created_at, expires_at, ...rest }) => ({
    ...rest,
    created_at: new Date(created_at),
    expires_at: new Date(expires_at),
  }))
}
