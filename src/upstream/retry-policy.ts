// Decides whether a failed request may be sent again (CONTRACT §2, `retries`).
import type { RequestBody } from '../http/request-body.ts'
import { type Failure, isTimeout } from './failures.ts'
import type { ForwardOptions } from './forward-options.ts'

/** Without a response: whether sending the request twice does no harm, and another attempt may succeed. */
export function isRetryable(
  { request, upstream }: ForwardOptions,
  body: RequestBody | null,
  failure: Failure,
  error: Error,
): boolean {
  if (!idempotentMethods.has(request.method ?? '')) return false
  if (body !== null && !body.isUnread) return false
  // A timeout is not retried: the client has waited long enough. Unreachable is retried only on another target.
  return failure === 'unreachable' ? upstream.targets.length > 1 : !isTimeout(error)
}

/** Sending these twice has the effect of sending them once (RFC 9110 §9.2.2). */
const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
