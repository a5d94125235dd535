// The methods whose request may be sent twice (RFC 9110 §9.2.2).

/** Sent twice it has the effect of once. */
export function isIdempotent(method: string): boolean {
  return idempotent.has(method)
}

const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
