// The gateway's own endpoints, with their requests and responses.
import type { JsonObject } from '../http/json-body.ts'
import type { AuthenticatedUser } from '../identity/identity.ts'
import type { Operation, Refusals } from '../openapi/operation.ts'
import type { Plan, User } from '../users/user.ts'

export type LocalEndpoint = PublicEndpoint | GuardedEndpoint | DocumentEndpoint

/** Serves all clients. It reads a credential only if the body requires one. */
export interface PublicEndpoint {
  readonly kind: 'public'
  readonly operation: Operation
  /** @param authenticate runs the authentication guard, and throws its refusal */
  answer(
    request: EndpointRequest,
    authenticate: () => Promise<AuthenticatedRequest>,
  ): Promise<EndpointResponse>
}

export function publicEndpoint(operation: Operation, answer: PublicEndpoint['answer']): PublicEndpoint {
  return { kind: 'public', operation, answer }
}

/** Runs after the authentication and plan guards. */
export interface GuardedEndpoint {
  readonly kind: 'guarded'
  /** A GET operation also serves HEAD. */
  readonly operation: Operation
  /** The plans that the plan guard allows; undefined: all plans. */
  readonly plans: readonly Plan[] | undefined
  handle(request: AuthenticatedRequest): Promise<EndpointResponse>
}

export function guardedEndpoint(
  operation: Operation,
  handle: GuardedEndpoint['handle'],
  plans?: readonly Plan[],
): GuardedEndpoint {
  return { kind: 'guarded', operation, plans, handle }
}

/** A document for all clients, which may keep it. The body of its request is not read. */
export interface DocumentEndpoint {
  readonly kind: 'document'
  readonly operation: Operation
  readonly maxAgeSeconds: number
  show(): object
}

export interface EndpointRequest {
  readonly body: JsonObject
  /** What stands in the place of `:id` in the path, in lower case; empty if the path has none. */
  readonly parameter: string
  /** The `User-Agent` header. */
  readonly userAgent: string | undefined
  /** The client's rate-limit key: its address; of IPv6, the /64. */
  readonly client: string
}

export interface AuthenticatedRequest extends EndpointRequest {
  /** As the record is now. */
  readonly user: User
  readonly credential: AuthenticatedUser['credential']
  /** Of the access token; undefined for an API key, and for a token of 0.1. */
  readonly sessionId: string | undefined
  /** Of the API key; undefined for an access token. */
  readonly apiTokenId: number | undefined
}

export interface EndpointResponse {
  readonly status: number
  /** Lower-case names, added to the headers of every response. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; absent: a response without content. */
  readonly body?: object
  /** The user that registered, logged in or logged out, for the access log; absent when not known. */
  readonly userId?: number | undefined
}

/** Refusals that every guarded endpoint shares: those of its guards and of reading its body. */
export const guardRefusals: Refusals = {
  400: ['credentials_ambiguous'],
  401: ['token_invalid', 'key_check_failed', 'user_not_found'],
  413: ['body_too_large'],
  429: ['rate_limited'],
  503: ['service_unavailable'],
}
