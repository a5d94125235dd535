// The four endpoints under /api/v1/auth (spec §4): their limits, and what of the body reaches the accounts.
import type { Accounts } from '../accounts/accounts.ts'
import { normalizeEmail } from '../accounts/email.ts'
import type { Sessions } from '../accounts/sessions.ts'
import type { JsonObject } from '../http/json-body.ts'
import { messages } from '../refusals/catalog.ts'
import { rateLimited } from '../refusals/limits.ts'
import type { Limiter, Limiters } from '../storage/rate-limiter.ts'
import type { authOperations } from './auth.openapi.ts'
import type { FailureLimits } from './failed-login-limiter.ts'

/** What an endpoint is given: the body as an object, and what limits count the client by. */
export interface Call {
  readonly body: JsonObject
  /** The client's address, of IPv6 its /64. */
  readonly client: string
}

export interface Reply {
  readonly status: number
  readonly body: object
  /** Who was signed up, in or out, for the log; `undefined` where that is not known. */
  readonly userId: number | undefined
}

export type Endpoint = (call: Call) => Promise<Reply>

interface Parts {
  accounts: Accounts
  sessions: Sessions
  limiters: Pick<Limiters, 'register' | 'login' | 'login_address' | 'refresh'>
  failures: FailureLimits
}

/** By the last segment of their path; all of them are POST. */
export function createAuthEndpoints({
  accounts,
  sessions,
  limiters,
  failures,
}: Parts): Record<keyof typeof authOperations, Endpoint> {
  return {
    async register({ body, client }) {
      await spend('register', limiters.register, client)
      const created = await accounts.register({
        email: body.string('email'),
        password: body.string('password'),
      })
      return { status: 201, body: created, userId: created.user_id }
    },

    async login({ body, client }) {
      const submitted = { email: body.string('email'), password: body.string('password') }
      const { userId, ...pair } = await failures.counting(
        [
          { policy: 'login', limiter: limiters.login, key: `${client} ${normalizeEmail(submitted.email)}` },
          { policy: 'login_address', limiter: limiters.login_address, key: client },
        ],
        () => accounts.login(submitted),
      )
      return { status: 200, body: pair, userId }
    },

    async refresh({ body, client }) {
      await spend('refresh', limiters.refresh, client)
      const { userId, ...pair } = await sessions.refresh(body.string('refresh_token'))
      return { status: 200, body: pair, userId }
    },

    async logout({ body }) {
      const userId = await sessions.logout(body.string('refresh_token'))
      return { status: 200, body: { message: messages.loggedOut }, userId }
    },
  }
}

async function spend(policy: string, limiter: Limiter, key: string): Promise<void> {
  const taken = await limiter.take(key)
  if (!taken.allowed) throw rateLimited(policy, taken)
}
