// The gateway's own endpoints: what one is, what it is given, and how it answers.
import type { JsonObject } from '../http/json-body.ts'
import type { Operation, Refusals } from '../openapi/operation.ts'
import type { Plan, User } from '../users/user.ts'

export type Endpoint = OpenEndpoint | GuardedEndpoint

/** Anybody may call it; it reads no credential. */
export interface OpenEndpoint {
  readonly kind: 'open'
  readonly operation: Operation
  answer(request: EndpointRequest): Promise<EndpointResponse>
}

/** Behind the authentication guard, and the plan guard. */
export interface GuardedEndpoint {
  readonly kind: 'guarded'
  /** A GET answers HEAD too. */
  readonly operation: Operation
  /** Whom the plan guard lets through; undefined: every plan. */
  readonly plans: readonly Plan[] | undefined
  handle(request: AuthenticatedRequest): Promise<EndpointResponse>
}

export interface EndpointRequest {
  readonly body: JsonObject
  /** What rate limits count the client by: its address, of IPv6 its /64. */
  readonly client: string
}

export interface AuthenticatedRequest extends EndpointRequest {
  /** As the record says now. */
  readonly user: User
}

export interface EndpointResponse {
  readonly status: number
  /** Lower-case names, beside those that every answer carries. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; absent: an answer without content. */
  readonly body?: object
  /** Who was signed up, in or out, for the log; absent where that is not known. */
  readonly userId?: number | undefined
}

/** What the guards of every guarded endpoint, and the reading of its body, may refuse. */
export const guardRefusals: Refusals = {
  400: ['credentials_ambiguous'],
  401: ['token_invalid', 'key_check_failed', 'user_not_found'],
  413: ['body_too_large'],
  429: ['rate_limited'],
  503: ['service_unavailable'],
}
