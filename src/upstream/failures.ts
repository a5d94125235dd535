// Classifies failed attempts to send a request. The class decides what the client receives, whether the target counts
// as failing, and whether the request is sent again. The client never receives an upstream address or an error text.
import type { IncomingMessage } from 'node:http'
import { errors } from 'undici'
import type { RequestBody } from '../http/request-body.ts'
import { ClientDisconnected, Refusal } from '../refusals/refusal.ts'

/**
 * `unreachable` means that no connection to the target could be opened. `silent` means that the connection was open,
 * but the target sent no response in time, or the connection broke before a response.
 */
type Failure = 'unreachable' | 'silent'

/** Returns the refusal for a failed exchange. Its `cause` is the error, for the log. */
export function refusalFor(error: Error): Refusal {
  if (error instanceof Refusal) return error
  if (isTimeout(error)) return new Refusal('upstream_timeout', { cause: error })
  if (isInvalidRequest(error)) {
    return new Refusal('request_invalid', { cause: error, headers: { connection: 'close' } })
  }
  return new Refusal('upstream_unreachable', { cause: error })
}

/**
 * @param wasConnected whether sending the request had begun
 * @returns undefined if the client or the gateway itself caused the failure
 */
export function failureOf(error: Error, wasConnected: boolean): Failure | undefined {
  if (error instanceof Refusal || error instanceof ClientDisconnected || isInvalidRequest(error))
    return undefined
  if (error instanceof errors.ClientDestroyedError) return undefined
  return wasConnected ? 'silent' : 'unreachable'
}

/**
 * Returns what a failure means for the health of the target. A failure that a client can cause is `inconclusive`, so
 * that no client can take a target out of service. For example, a client can stop sending its body until the target
 * closes the connection. Or a target may repeat invalid bytes from the client in its response.
 * @param body the body that is streamed to the target, if any
 */
export function resultOf(
  failure: Failure | undefined,
  error: Error,
  body: RequestBody | null,
): Failure | 'inconclusive' {
  if (failure !== 'silent' || isTimeout(error)) return failure ?? 'inconclusive'
  return body?.isOwed === true || isUnusableResponse(error) ? 'inconclusive' : failure
}

/** Returns whether the target sent a response whose head is too large or has an invalid header. */
function isUnusableResponse(error: Error): boolean {
  if (error instanceof errors.HeadersOverflowError) return true
  return error instanceof errors.HTTPParserError && !startLineError.test(error.message)
}

/**
 * Matches the error texts of llhttp for a response that is not HTTP/1. The text is matched, because undici 7 does not
 * expose the error code of llhttp.
 */
const startLineError = /Expected (HTTP|dot)|version|status/

/** Returns whether the upstream accepted the connection, but did not begin or continue its response in time. */
function isTimeout(error: Error): boolean {
  return error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError
}

/** Returns whether undici refused to send the client's headers or content length. */
function isInvalidRequest(error: Error): boolean {
  return (
    error instanceof errors.InvalidArgumentError || error instanceof errors.RequestContentLengthMismatchError
  )
}

/** How an attempt ended. An `inconclusive` end does not show whether the target is healthy. */
export type AttemptResult = 'answered' | Failure | 'inconclusive'

/** How an exchange ended: the response was complete, the upstream broke it off, or the client left. */
export type Outcome = 'complete' | 'broken' | 'client_gone'

/** Called once, with the result of the attempt. */
export type EndAttempt = (result: AttemptResult) => void

interface SentRequest {
  readonly request: Pick<IncomingMessage, 'method'>
  readonly hasBody: boolean
  readonly upstream: { hasAlternatives(): boolean }
}

/**
 * Returns whether another attempt is safe and may succeed. The previous attempt must have ended without a response.
 * @param body the streamed body; null if the request has no body, or if its whole body was read in advance
 */
export function isRetryable(
  { request, hasBody, upstream }: SentRequest,
  body: RequestBody | null,
  failure: Failure,
  error: Error,
): boolean {
  if (body === null ? hasBody && failure === 'silent' : !body.isUnread) return false
  // Nothing was sent, so a request of any method can be sent again. It must go to another endpoint, because the same
  // endpoint would fail again.
  if (failure === 'unreachable') return upstream.hasAlternatives()
  // A timeout is not retried, because the client has already waited long enough.
  return idempotentMethods.has(request.method ?? '') && !isTimeout(error)
}

/** The methods for which a second request has no additional effect (RFC 9110 §9.2.2). */
const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
