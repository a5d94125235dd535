// What a receiver's answer makes of a message: delivered, failed for good, or to be tried again (CONTRACT §5).
import type { AttemptOutcome } from '../../outbox/attempt-store.ts'
import { retryDelayMs } from '../../outbox/retry-delay.ts'
import { parseRetryAfterMs, retryDelaysMs } from '../delivery/retry-schedule.ts'
import type { SendOutcome } from './send.ts'

/**
 * @param attempts made so far, this one included; `is_last` where no other follows whatever the schedule has left
 * @param random from 0 to 1
 * @param nowMs since the epoch
 */
export function outcomeOf(
  outcome: SendOutcome,
  { attempts, is_last = false }: { attempts: number; is_last?: boolean },
  random: number,
  nowMs: number,
): AttemptOutcome<'delivered'> {
  const responseStatus = outcome.kind === 'answered' ? outcome.status : null
  const error = outcome.kind === 'failed' ? `${outcome.reason}: ${outcome.message}` : null
  if (responseStatus !== null && responseStatus >= 200 && responseStatus < 300) {
    return { responseStatus, error, result: 'delivered' }
  }
  const retryAfter = outcome.kind === 'answered' ? outcome.retryAfter : undefined
  const retryAfterMs = retryAfter === undefined ? 0 : parseRetryAfterMs(retryAfter, nowMs)
  const delayMs =
    responseStatus === 410 || is_last
      ? undefined
      : retryDelayMs(retryDelaysMs, attempts, random, retryAfterMs)
  return {
    responseStatus,
    error,
    result: delayMs === undefined ? 'failed' : { retryAt: new Date(nowMs + delayMs) },
  }
}
