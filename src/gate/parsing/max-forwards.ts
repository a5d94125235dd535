// Implements `Max-Forwards` of OPTIONS and TRACE requests (RFC 9110 §7.6.2). Other methods and invalid values are not
// changed.
import type { IncomingMessage } from 'node:http'

/** Returns whether the gateway is the final recipient of the request, so it must not forward the request. */
export function isLastHop(request: IncomingMessage): boolean {
  if (!limitsForwards(request.method)) return false
  const raw = request.rawHeaders
  // `headers` of Node contains only the first of several values.
  return raw.some(
    (name, i) => i % 2 === 0 && /^max-forwards$/i.test(name) && /^0+$/.test(raw[i + 1] as string),
  )
}

/** Returns the value for the next recipient. */
export function nextMaxForwards(method: string | undefined, value: string): string {
  if (!limitsForwards(method) || !/^\d+$/.test(value)) return value
  return String(Math.min(Number(value) - 1, Number.MAX_SAFE_INTEGER))
}

function limitsForwards(method: string | undefined): boolean {
  return method === 'OPTIONS' || method === 'TRACE'
}
