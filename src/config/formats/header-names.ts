// Normalizes header names as the most lenient upstream does, and lists the names that only the gateway may set.

/**
 * Returns the same text for names that CGI, WSGI and PHP map to one variable, for example `X-User-Id`, `x_user_id` and
 * `x.user.id`.
 */
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
  'x-user-key-id',
  'x-user-scopes',
  'x-peage-assertion',
])

/**
 * Returns true for headers that apply to one connection only (RFC 9110 §7.6.1), for headers of the message framing, and
 * for headers that the gateway handles itself.
 */
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
  // RFC 9110 §7.6.1 lets intermediaries remove other headers too. `Proxy` is removed, because CGI turns it into
  // HTTP_PROXY (CVE-2016-5385).
  'proxy',
  // Only the gateway sets this header, never an upstream.
  'x-peage-error',
])
