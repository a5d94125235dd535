// The result of one request sent to one target.
import type { Failure } from '../failures.ts'

/** How an attempt ended: with a response head, without one, or because of the client. */
export type AttemptResult = 'answered' | Failure | 'client_gone'

/** Called once, with the result of the attempt. */
export type EndAttempt = (result: AttemptResult) => void
