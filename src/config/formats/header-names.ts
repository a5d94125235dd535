// How the laxest upstream reads a header name, and which names only the gateway may set (CONTRACT §6).

/**
 * The name as the laxest upstream reads it: lower case, every run of other characters one `-`, none at the ends.
 * CGI, WSGI and PHP make one variable of `X-User-Id`, `x_user_id` and `x.user.id`.
 */
export function canonicalName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

/** They identify the caller, so only the gateway may set them. By canonical name, as in the sets below. */
export const identityNames: ReadonlySet<string> = new Set([
  'x-user-id',
  'x-user-plan',
  'x-user-email',
  'x-peage-assertion',
])

/** Hop-by-hop (RFC 9110 §7.6.1), part of the message framing, or handled by the gateway itself. */
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
  // RFC 9110 §7.6.1 leaves it to intermediaries to remove; `Proxy:` becomes HTTP_PROXY in CGI (CVE-2016-5385).
  'proxy',
  // Set by the gateway, never by an upstream.
  'x-peage-error',
])
