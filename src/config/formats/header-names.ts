// Normalizes header names as the most lenient upstream does, and lists the names that only the gateway may set.

/** CGI, WSGI and PHP map `X-User-Id`, `x_user_id` and `x.user.id` to the same variable. */
export function canonicalName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

/** Canonical names of the headers that identify the caller. Only the gateway may set them. */
export const identityNames: ReadonlySet<string> = new Set([
  'x-user-id',
  'x-user-plan',
  'x-user-email',
  'x-peage-assertion',
])

/** Also true for headers of the message framing and headers that the gateway handles itself (RFC 9110 §7.6.1). */
export function isHopByHop(canonical: string): boolean {
  return hopByHop.has(canonical) || canonical.startsWith('proxy-')
}

const hopByHop: ReadonlySet<string> = new Set([
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'expect',
  // RFC 9110 §7.6.1 lets intermediaries remove other headers too. CGI turns `Proxy` into HTTP_PROXY (CVE-2016-5385).
  'proxy',
  // Only the gateway sets this header, never an upstream.
  'x-peage-error',
])
