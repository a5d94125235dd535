// What an upstream's failure is: to the client, which is never told its address or error (CONTRACT §6), and to whom we ask next.
import { errors } from 'undici'
import { ClientDisconnected } from '../refusals/client-gone.ts'
import { Refusal } from '../refusals/refusal.ts'

/** A target that gave no answer: no connection to it, or one on which nothing came in time or before it broke. */
export type Failure = 'unreachable' | 'silent'

/** The refusal for a failed exchange; the failure itself goes along as its cause, for the log. */
export function refusalFor(error: Error): Refusal {
  if (error instanceof Refusal) return error
  if (isTimeout(error)) return new Refusal('upstream_timeout', { cause: error })
  if (isInvalidRequest(error)) {
    return new Refusal('request_invalid', { cause: error, headers: { connection: 'close' } })
  }
  return new Refusal('upstream_unreachable', { cause: error })
}

/**
 * @param wasConnected the request was begun to be sent
 * @returns nothing where the target is not to blame: a client must not be able to put it out of use
 */
export function failureOf(error: Error, wasConnected: boolean): Failure | undefined {
  if (error instanceof Refusal || error instanceof ClientDisconnected || isInvalidRequest(error))
    return undefined
  if (error instanceof errors.ClientDestroyedError) return undefined
  return wasConnected ? 'silent' : 'unreachable'
}

/** The upstream was connected to and took too long. */
export function isTimeout(error: Error): boolean {
  return error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError
}

/** undici found the client's fields or length unfit to be sent. */
function isInvalidRequest(error: Error): boolean {
  return (
    error instanceof errors.InvalidArgumentError || error instanceof errors.RequestContentLengthMismatchError
  )
}
