// One request sent to one target: how it is told that it ended.
import type { Failure } from '../failures.ts'

/** How a try ended: at the answer's head, without one, or by the client's doing. */
export type AttemptResult = 'answered' | Failure | 'client_gone'

/** Told once how the try ended. */
export type EndAttempt = (result: AttemptResult) => void
