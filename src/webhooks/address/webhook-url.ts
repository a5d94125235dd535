// Validates the URLs that users register as webhooks: the raw string first, then the parsed URL (CONTRACT §5).
import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { isPublic } from './public-address.ts'

/** In code points, as Postgres counts them. */
const maxUrlCharacters = 2_048

/** The WHATWG parser repairs `https:x`, `https:\\x`, `https:///x` and `h%6fst`; a valid URL must need no repair. */
const authorityPattern = /^https:\/\/([^/?#\\@%]+)(?=[/?#]|$)/i

/** The parser strips or percent-encodes these, so the stored URL would differ from the requested one. */
const alteredByParser = /[\s\p{Cc}\\]/u

/**
 * Parses a webhook's URL. The URL is stored and returned as written; the result serves for checking and connecting.
 * Resolves no names: see `findDestination`.
 * @param options.allowPrivate `webhooks.allow_private_networks`: lifts the rules on addresses and `localhost`
 */
export function parseWebhookUrl(raw: unknown, options: { readonly allowPrivate: boolean }): URL | 'invalid' {
  if (typeof raw !== 'string' || !isWithinMaxLength(raw) || alteredByParser.test(raw) || !raw.isWellFormed())
    return 'invalid'
  const authority = authorityPattern.exec(raw)?.[1]
  if (authority === undefined || endsInDot(authority)) return 'invalid'
  const url = parseUrl(raw)
  if (url === undefined) return 'invalid'
  const isAllowed = isValidHost(url.hostname) && (options.allowPrivate || isPublicHost(url))
  return isAllowed && url.port !== '0' ? url : 'invalid'
}

/** The host without IPv6 brackets: a name in lower case and punycode, or an address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

/** Not by `URL.canParse`: once V8 has compiled its caller, Node 20 and 22 answer false to `https://bücher.example`. */
function parseUrl(raw: string): URL | undefined {
  try {
    return new URL(raw)
  } catch {
    return undefined
  }
}

function isWithinMaxLength(raw: string): boolean {
  return (
    raw.length <= maxUrlCharacters ||
    (raw.length <= 2 * maxUrlCharacters && [...raw].length <= maxUrlCharacters)
  )
}

/** Checked before parsing, which strips the dot of `8.8.8.8.`. IDNA adds three more dots to ASCII's. */
function endsInDot(authority: string): boolean {
  return /[.\u3002\uff0e\uff61](?::[0-9]*)?$/.test(authority)
}

/** The lengths of RFC 1035 §2.3.4, which the parser leaves to the resolver, and punycode that it does not check. */
function isValidHost(hostname: string): boolean {
  if (hostname.startsWith('[')) return true
  return hostname.length <= 253 && hostname.split('.').every(isValidLabel)
}

function isValidLabel(label: string): boolean {
  if (label.length < 1 || label.length > 63) return false
  return !label.startsWith('xn--') || isPunycode(label)
}

/** Punycode that does not decode is answered with nothing by Node 20 and 22, and with itself by 24 and later. */
function isPunycode(label: string): boolean {
  const decoded = domainToUnicode(label)
  return decoded !== label && domainToASCII(decoded) === label
}

/** RFC 6761 §6.3 reserves `localhost` and every name under it for loopback. */
function isPublicHost(url: URL): boolean {
  const host = hostOf(url)
  return isIP(host) === 0 ? !/(?:^|\.)localhost$/.test(host) : isPublic(host)
}
