// Implements `Max-Forwards` of OPTIONS and TRACE requests (RFC 9110 §7.6.2). For other methods, the header stays
// unchanged. An invalid value also stays unchanged.
import type { IncomingMessage } from 'node:http'

/** Returns whether `Max-Forwards` is 0. The gateway then responds itself and does not forward the request. */
export function isLastHop(request: IncomingMessage): boolean {
  if (!limitsForwards(request.method)) return false
  const raw = request.rawHeaders
  // If the header is repeated, Node's `headers` contains only its first value. So the raw headers are read.
  return raw.some(
    (name, i) => i % 2 === 0 && /^max-forwards$/i.test(name) && /^0+$/.test(raw[i + 1] as string),
  )
}

/** Returns the `Max-Forwards` value for the upstream. */
export function nextMaxForwards(method: string | undefined, value: string): string {
  if (!limitsForwards(method) || !/^\d+$/.test(value)) return value
  return String(Math.min(Number(value) - 1, Number.MAX_SAFE_INTEGER))
}

function limitsForwards(method: string | undefined): boolean {
  return method === 'OPTIONS' || method === 'TRACE'
}
