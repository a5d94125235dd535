// Classifies upstream failures: for the client, which never sees an address or error (CONTRACT §6), and for retries.
import { errors } from 'undici'
import { ClientDisconnected, Refusal } from '../refusals/refusal.ts'

/** No response: the target could not be connected to, or sent none in time or before the connection broke. */
export type Failure = 'unreachable' | 'silent'

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
 * @returns undefined if the target is not to blame: a client must not be able to take it out of service
 */
export function failureOf(error: Error, wasConnected: boolean): Failure | undefined {
  if (error instanceof Refusal || error instanceof ClientDisconnected || isInvalidRequest(error))
    return undefined
  if (error instanceof errors.ClientDestroyedError) return undefined
  return wasConnected ? 'silent' : 'unreachable'
}

/** The upstream accepted the connection but took too long. */
export function isTimeout(error: Error): boolean {
  return error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError
}

/** undici refused to send the client's headers or content length. */
function isInvalidRequest(error: Error): boolean {
  return (
    error instanceof errors.InvalidArgumentError || error instanceof errors.RequestContentLengthMismatchError
  )
}
