// What the client is told when an upstream fails (CONTRACT §6): never its address, never its error.
import { errors } from 'undici'
import { Refusal } from '../refusals/refusal.ts'

/** The refusal for a failed exchange; the failure itself goes along as its cause, for the log. */
export function refusalFor(error: Error): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) {
    return new Refusal('upstream_timeout', { cause: error })
  }
  // undici found the client's fields or length unfit to be sent.
  if (
    error instanceof errors.InvalidArgumentError ||
    error instanceof errors.RequestContentLengthMismatchError
  ) {
    return new Refusal('request_invalid', { cause: error, headers: { connection: 'close' } })
  }
  return new Refusal('upstream_unreachable', { cause: error })
}
