// Defines the gateway's own endpoints, with their requests and responses.
import type { JsonObject } from '../http/json-body.ts'
import type { AuthenticatedUser } from '../identity/identity.ts'
import { mergeRefusals, type Operation, type Refusals } from '../openapi/operation.ts'
import type { Plan, User } from '../users/user.ts'

export type LocalEndpoint = PublicEndpoint | GuardedEndpoint | DocumentEndpoint

/** An endpoint for all clients. It checks the credential of a request only if it calls `authenticate`. */
export interface PublicEndpoint {
  readonly kind: 'public'
  readonly operation: Operation
  /** @param authenticate a function that requires an access token; it runs the guards, and throws if they refuse */
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
  /** The operation that the endpoint serves. An endpoint for GET also serves HEAD, unless `refusesHead` is set. */
  readonly operation: Operation
  /** The callers whom the guards allow. */
  readonly accepts: AcceptedCallers
  handle(request: AuthenticatedRequest): Promise<EndpointResponse>
}

/** The API keys that an endpoint accepts. `api_token`: only the key that `POST /api/v1/user/api-token` created. */
export type AcceptedKeys = 'none' | 'api_token' | 'all'

/** The callers whom a local endpoint accepts. */
export interface AcceptedCallers {
  readonly keys: AcceptedKeys
  /** The accepted plans. Undefined if every plan is accepted. */
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
  /** The query as received, including the `?`. Empty if there is no query. */
  readonly query: string
  /** The header `Cookie`. */
  readonly cookie: string | undefined
  /** The client's rate-limit key: the IPv4 address, or the /64 of an IPv6 address. */
  readonly client: string
}

export interface AuthenticatedRequest extends EndpointRequest {
  /** The user's record. It may come from the cache, so its `daily_usage` may be outdated. */
  readonly user: User
  /** The session of the access token. Undefined for an API key, and for a token that version 0.1 issued. */
  readonly sessionId: AuthenticatedUser['sessionId']
  /** The API key of the request. Undefined if the request has an access token. */
  readonly apiKey: AuthenticatedUser['apiKey']
}

export interface EndpointResponse {
  readonly status: number
  /** Additional headers of this response. Their names are in lower case. */
  readonly headers?: Readonly<Record<string, string | string[]>>
  /** The JSON body. Without it, the response has no content. */
  readonly body?: object
  /** The error code in the address to which the browser is redirected. The access log and the metrics contain it. */
  readonly error?: string | undefined
  /** The user who registered, logged in or logged out, for the access log. Absent if unknown. */
  readonly userId?: number | undefined
}

/** The refusals that the guards or the body can cause at an endpoint that accepts all API keys. */
export const anyKeyRefusals: Refusals = {
  400: ['credentials_ambiguous'],
  401: ['token_invalid', 'key_check_failed', 'user_not_found'],
  413: ['body_too_large'],
  429: ['rate_limited'],
  503: ['service_unavailable'],
}

/** The refusals that the guards or the body can cause at every other guarded endpoint. */
export const guardRefusals = mergeRefusals(anyKeyRefusals, { 403: ['bearer_required'] })
