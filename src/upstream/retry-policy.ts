// Which failed request may be sent once more (CONTRACT §2, `retries`).
import type { RequestBody } from '../http/request-body.ts'
import { type Failure, isTimeout } from './failures.ts'
import type { ForwardOptions } from './forward-options.ts'

/** Nothing was answered: whether sending it twice does no harm, and another try may fare better. */
export function isRetryable(
  { request, upstream }: ForwardOptions,
  body: RequestBody | null,
  failure: Failure,
  error: Error,
): boolean {
  if (!idempotentMethods.has(request.method ?? '')) return false
  if (body !== null && !body.isUnread) return false
  // Who waited so long for nothing is told so; who could not be connected to has to have another to go to.
  return failure === 'unreachable' ? upstream.targets.length > 1 : !isTimeout(error)
}

/** Sent twice they have the effect of once (RFC 9110 §9.2.2). */
const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
