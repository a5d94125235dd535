// What a page in an operator's browser may not do: drive a listener that only that machine reaches.
import type { IncomingHttpHeaders } from 'node:http'
import { Refusal } from '../refusals/refusal.ts'

/**
 * No page of another site may ask for anything of the API, whatever token it has got hold of. Programs send neither
 * field, and browsers let no page change them (Fetch Metadata Request Headers §2; RFC 6454 §7).
 * @throws Refusal 403 `admin_unauthorized`
 */
export function rejectCrossSite({ origin, host, ...headers }: IncomingHttpHeaders): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw forbidden()
  if (origin !== undefined && hostOf(origin) !== host?.toLowerCase()) throw forbidden()
}

/**
 * A page may have its own name resolve to 127.0.0.1 (DNS rebinding), and is then of the same site to the browser; but
 * the browser sends that name.
 * @throws Refusal 403 `admin_unauthorized`
 */
export function rejectDnsRebinding({ host }: IncomingHttpHeaders): void {
  // Browsers always send one; an HTTP/1.0 client need not.
  if (host !== undefined && !isLoopback(hostName(host))) throw forbidden()
}

/** @param name an address, or a host name in lower case; IPv6 with or without its brackets */
export function isLoopback(name: string): boolean {
  const bare = name.replace(/^\[|\]$/g, '')
  return loopback.some(pattern => pattern.test(bare))
}

/** The last two: IPv4 wrapped in IPv6, as it is written and as URLs have it. */
const loopback = [
  /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/,
  /^(.+\.)?localhost\.?$/,
  /^::1$/,
  /^::ffff:127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/,
  /^::ffff:7f[\da-f]{2}:[\da-f]{1,4}$/,
]

function hostName(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '')
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}

function forbidden(): Refusal {
  return new Refusal('admin_unauthorized', { status: 403 })
}
