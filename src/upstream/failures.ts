// What came of an attempt: a failure is classified for the client, which never sees an address or error (CONTRACT §6),
// for its target's health, and for retries (CONTRACT §2, `retries`).
import type { IncomingMessage } from 'node:http'
import { errors } from 'undici'
import type { RequestBody } from '../http/request-body.ts'
import { ClientDisconnected, Refusal } from '../refusals/refusal.ts'

/** No response: the target could not be connected to, or sent none in time or before the connection broke. */
type Failure = 'unreachable' | 'silent'

/** The refusal for a failed exchange, with the failure as its cause, for the log. */
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
 * @returns undefined if the failure is the client's or the gateway's own
 */
export function failureOf(error: Error, wasConnected: boolean): Failure | undefined {
  if (error instanceof Refusal || error instanceof ClientDisconnected || isInvalidRequest(error))
    return undefined
  if (error instanceof errors.ClientDestroyedError) return undefined
  return wasConnected ? 'silent' : 'unreachable'
}

/**
 * What a failure says about the target: a client must not be able to take it out of service. A service may end a
 * connection whose body does not come, and it may repeat in its response what the client sent.
 * @param body that is streamed to the target, if any
 */
export function resultOf(
  failure: Failure | undefined,
  error: Error,
  body: RequestBody | null,
): Failure | 'inconclusive' {
  if (failure !== 'silent' || isTimeout(error)) return failure ?? 'inconclusive'
  return body?.isOwed === true || isUnusableResponse(error) ? 'inconclusive' : failure
}

/** A response came, and its head cannot be read: it is too large, or has an invalid field. */
function isUnusableResponse(error: Error): boolean {
  if (error instanceof errors.HeadersOverflowError) return true
  return error instanceof errors.HTTPParserError && !startLineError.test(error.message)
}

/** Reasons of llhttp: the response is no HTTP/1 at all. undici 7 passes no error code on. */
const startLineError = /Expected (HTTP|dot)|version|status/

/** The upstream accepted the connection but took too long. */
function isTimeout(error: Error): boolean {
  return error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError
}

/** undici refused to send the client's headers or content length. */
function isInvalidRequest(error: Error): boolean {
  return (
    error instanceof errors.InvalidArgumentError || error instanceof errors.RequestContentLengthMismatchError
  )
}

/** How an attempt ended: with a response head, without one, or in a way that says nothing about the target. */
export type AttemptResult = 'answered' | Failure | 'inconclusive'

/** How an exchange ended: complete, broken off by the upstream, or abandoned by the client. */
export type Outcome = 'complete' | 'broken' | 'client_gone'

/** Called once, with the result of the attempt. */
export type EndAttempt = (result: AttemptResult) => void

interface SentRequest {
  readonly request: Pick<IncomingMessage, 'method'>
  readonly hasBody: boolean
  readonly upstream: { hasAlternatives(): boolean }
}

/**
 * Without a response: whether sending the request twice does no harm, and another attempt may succeed.
 * @param body that is streamed; null for a body that was read before, and for none
 */
export function isRetryable(
  { request, hasBody, upstream }: SentRequest,
  body: RequestBody | null,
  failure: Failure,
  error: Error,
): boolean {
  if (body === null ? hasBody && failure === 'silent' : !body.isUnread) return false
  // Nothing was sent, whatever the method; the same endpoint would not be reached the second time either.
  if (failure === 'unreachable') return upstream.hasAlternatives()
  // A timeout is not retried: the client has waited long enough.
  return idempotentMethods.has(request.method ?? '') && !isTimeout(error)
}

/** Sending these twice has the effect of sending them once (RFC 9110 §9.2.2). */
const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
