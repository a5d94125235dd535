// Defines the gateway's own endpoints, with their requests and responses.
import type { JsonObject } from '../http/json-body.ts'
import type { AuthenticatedUser } from '../identity/identity.ts'
import type { Operation, Refusals } from '../openapi/operation.ts'
import type { Plan, User } from '../users/user.ts'

export type LocalEndpoint = PublicEndpoint | GuardedEndpoint | DocumentEndpoint

/** An endpoint for all clients. It reads a credential only if the body requires one. */
export interface PublicEndpoint {
  readonly kind: 'public'
  readonly operation: Operation
  /** @param authenticate a function that runs the authentication guard, and throws its refusal */
  answer(
    request: EndpointRequest,
    authenticate: () => Promise<AuthenticatedRequest>,
  ): Promise<EndpointResponse>
}

export function publicEndpoint(operation: Operation, answer: PublicEndpoint['answer']): PublicEndpoint {
  return { kind: 'public', operation, answer }
}

/** An endpoint that runs after the authentication and plan guards. */
export interface GuardedEndpoint {
  readonly kind: 'guarded'
  /** The operation that the endpoint serves. If its method is GET, the endpoint also serves HEAD. */
  readonly operation: Operation
  /** The plans that the plan guard allows. Undefined for all plans. */
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

/** An endpoint for a document that all clients may read and cache. The body of the request is not read. */
export interface DocumentEndpoint {
  readonly kind: 'document'
  readonly operation: Operation
  readonly maxAgeSeconds: number
  show(): object
}

export interface EndpointRequest {
  readonly body: JsonObject
  /** The text in place of `:id` in the path, in lower case. Empty if the path has no `:id`. */
  readonly parameter: string
  readonly userAgent: string | undefined
  /** The client's rate-limit key: the IPv4 address, or the /64 of an IPv6 address. */
  readonly client: string
}

export interface AuthenticatedRequest extends EndpointRequest {
  /** The current record. Its `daily_usage` may be outdated, because the record may come from the cache. */
  readonly user: User
  readonly credential: AuthenticatedUser['credential']
  /** The session of the access token. Undefined for an API key, and for a token of version 0.1. */
  readonly sessionId: string | undefined
  /** The id of the API key. Undefined for an access token. */
  readonly apiTokenId: number | undefined
}

export interface EndpointResponse {
  readonly status: number
  /** Additional headers of this response. Their names are in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  /** The JSON body. Without it, the response has no content. */
  readonly body?: object
  /** The user who registered, logged in or logged out, for the access log. Absent if unknown. */
  readonly userId?: number | undefined
}

/** Refusals that every guarded endpoint may send, because of its guards or the request body. */
export const guardRefusals: Refusals = {
  400: ['credentials_ambiguous'],
  401: ['token_invalid', 'key_check_failed', 'user_not_found'],
  413: ['body_too_large'],
  429: ['rate_limited'],
  503: ['service_unavailable'],
}
