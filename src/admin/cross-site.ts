// Refuses cross-site and DNS-rebinding requests, so that a page in an operator's browser cannot use the admin listener.
import type { IncomingHttpHeaders } from 'node:http'
import { Refusal } from '../refusals/refusal.ts'

/**
 * Refuses every cross-site request, even if it contains a stolen token. Programs other than browsers send neither
 * `Sec-Fetch-Site` nor `Origin`, so their requests are accepted. A web page cannot change these headers (Fetch Metadata
 * Request Headers §2; RFC 6454 §7).
 * @param ownOrigin the origin of the admin listener as the browser sees it
 * @throws Refusal 403 `admin_unauthorized`
 */
export function rejectCrossSite(
  { origin, ...headers }: IncomingHttpHeaders,
  ownOrigin: string | undefined,
): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw forbidden('origin')
  if (origin !== undefined && (ownOrigin === undefined || hostOf(origin) !== hostOf(ownOrigin)))
    throw forbidden('origin')
}

/**
 * Refuses a request without the listener's own `Origin`, because a page of another origin may have sent it with the
 * operator's cookie. Call this only for unsafe methods. Browsers always send `Origin` with these methods.
 * @throws Refusal 403 `admin_unauthorized`
 */
export function rejectForeignOrigin({ origin }: IncomingHttpHeaders, ownOrigin: string | undefined): void {
  if (origin === undefined || origin !== ownOrigin) throw forbidden('origin')
}

/**
 * Refuses a request whose `Host` is not a loopback name or address. A page can make its own host name resolve to
 * 127.0.0.1 (DNS rebinding). The browser then treats the request as same-site, but `Host` still contains the page's
 * name.
 * @throws Refusal 403 `admin_unauthorized`
 */
export function rejectDnsRebinding({ host }: IncomingHttpHeaders): void {
  // Browsers always send `Host`, but an HTTP/1.0 client may omit it.
  if (host !== undefined && !isLoopback(hostName(host))) throw forbidden('host')
}

/** @param name an IP address, or a host name in lower case; an IPv6 address may have brackets */
export function isLoopback(name: string): boolean {
  const bare = name.replace(/^\[|\]$/g, '')
  return loopback.some(pattern => pattern.test(bare))
}

/**
 * The last two patterns match IPv4-mapped IPv6 addresses: first the usual form, then the form that the URL parser
 * writes.
 */
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

function forbidden(reason: 'origin' | 'host'): Refusal {
  return new Refusal('admin_unauthorized', { status: 403, reason })
}
