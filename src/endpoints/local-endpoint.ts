// Defines the gateway's own endpoints, with their requests and responses.
import type { JsonObject } from '../http/json-body.ts'
import type { AuthenticatedUser } from '../identity/identity.ts'
import { mergeRefusals, type Operation, type Refusals } from '../openapi/operation.ts'
import type { Plan, User } from '../users/user.ts'

export type LocalEndpoint = PublicEndpoint | GuardedEndpoint | DocumentEndpoint

/** An endpoint for all clients. It reads a credential only if the body requires one. */
export interface PublicEndpoint {
  readonly kind: 'public'
  readonly operation: Operation
  /** @param authenticate a function that runs the guards for a signed-in user, and throws their refusal */
  answer(
    request: EndpointRequest,
    authenticate: () => Promise<AuthenticatedRequest>,
  ): Promise<EndpointResponse>
}

export function publicEndpoint(operation: Operation, answer: PublicEndpoint['answer']): PublicEndpoint {
  return { kind: 'public', operation, answer }
}

/** An endpoint that runs after the guards for authentication, scope and plan. */
export interface GuardedEndpoint {
  readonly kind: 'guarded'
  /** The operation that the endpoint serves. If its method is GET, the endpoint usually also serves HEAD. */
  readonly operation: Operation
  /** The callers whom the guards allow. */
  readonly accepts: AcceptedCallers
  handle(request: AuthenticatedRequest): Promise<EndpointResponse>
}

/** The API keys that an endpoint of the gateway accepts. `api_token` is the key of `/api/v1/user/api-token`. */
export type AcceptedKeys = 'none' | 'api_token' | 'all'

/** The callers whom a local endpoint accepts. */
export interface AcceptedCallers {
  readonly keys: AcceptedKeys
  /** Undefined for every plan. */
  readonly plans?: readonly Plan[] | undefined
}

export function guardedEndpoint(
  operation: Operation,
  accepts: AcceptedCallers,
  handle: GuardedEndpoint['handle'],
): GuardedEndpoint {
  return { kind: 'guarded', operation, accepts, handle }
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
  /** The query as received, including the `?`. Empty without one. */
  readonly query: string
  /** The header `Cookie`. */
  readonly cookie: string | undefined
  /** The client's rate-limit key: the IPv4 address, or the /64 of an IPv6 address. */
  readonly client: string
}

export interface AuthenticatedRequest extends EndpointRequest {
  /** The current record. Its `daily_usage` may be outdated, because the record may come from the cache. */
  readonly user: User
  /** The session of the access token. Undefined for an API key, and for a token of version 0.1. */
  readonly sessionId: AuthenticatedUser['sessionId']
  /** Undefined for an access token. */
  readonly apiKey: AuthenticatedUser['apiKey']
}

export interface EndpointResponse {
  readonly status: number
  /** Additional headers of this response. Their names are in lower case. */
  readonly headers?: Readonly<Record<string, string | string[]>>
  /** The JSON body. Without it, the response has no content. */
  readonly body?: object
  /** The error with which a browser returns to a page, for the access log and the metrics. */
  readonly error?: string | undefined
  /** The user who registered, logged in or logged out, for the access log. Absent if unknown. */
  readonly userId?: number | undefined
}

/** Refusals that an endpoint for all API keys may send, because of its guards or the request body. */
export const anyKeyRefusals: Refusals = {
  400: ['credentials_ambiguous'],
  401: ['token_invalid', 'key_check_failed', 'user_not_found'],
  413: ['body_too_large'],
  429: ['rate_limited'],
  503: ['service_unavailable'],
}

/** Refusals that every other guarded endpoint may send. */
export const guardRefusals = mergeRefusals(anyKeyRefusals, { 403: ['bearer_required'] })
