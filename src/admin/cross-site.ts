// Refuses cross-site and DNS-rebinding requests: a page in an operator's browser must not drive the admin listener.
import type { IncomingHttpHeaders } from 'node:http'
import { Refusal } from '../refusals/refusal.ts'

/**
 * Refuses every cross-site request, even one with a stolen token. Programs send neither header, and browsers let no
 * page change them (Fetch Metadata Request Headers §2; RFC 6454 §7).
 * @param ownOrigin what the browser sees
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
 * Refuses a request that a page of another origin could have made with the operator's cookie (CONTRACT §13): browsers
 * send `Origin` with every request that is not safe.
 * @param ownOrigin what the browser sees
 * @throws Refusal 403 `admin_unauthorized`
 */
export function rejectForeignOrigin({ origin }: IncomingHttpHeaders, ownOrigin: string | undefined): void {
  if (origin === undefined || origin !== ownOrigin) throw forbidden('origin')
}

/**
 * A page can make its own host name resolve to 127.0.0.1 (DNS rebinding). The browser then calls the request
 * same-site, but still sends that name as `Host`.
 * @throws Refusal 403 `admin_unauthorized`
 */
export function rejectDnsRebinding({ host }: IncomingHttpHeaders): void {
  // Browsers always send `Host`; an HTTP/1.0 client need not.
  if (host !== undefined && !isLoopback(hostName(host))) throw forbidden('host')
}

/** @param name an address, or a host name in lower case; IPv6 with or without its brackets */
export function isLoopback(name: string): boolean {
  const bare = name.replace(/^\[|\]$/g, '')
  return loopback.some(pattern => pattern.test(bare))
}

/** The last two are IPv4-mapped IPv6: as usually written, and as the URL parser writes it. */
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
