// Validates the URLs that users register as webhooks: first the raw string, then the parsed URL. The rules are in
// docs/http-api.md#webhooks.
import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { isPublic } from './public-address.ts'

/** The maximum length in code points, as Postgres counts them. */
const maxUrlCharacters = 2_048

/**
 * The WHATWG parser repairs `https:x`, `https:\\x`, `https:///x` and `h%6fst`. A URL that needs a repair is invalid.
 */
const authorityPattern = /^https:\/\/([^/?#\\@%]+)(?=[/?#]|$)/i

/** The parser removes or percent-encodes these characters, so the stored URL would differ from the requested URL. */
const alteredByParser = /[\s\p{Cc}\\]/u

/**
 * Parses a webhook's URL. The URL is stored and returned as the user wrote it. The parsed URL is for checks and for
 * connecting. This function resolves no names (see `findDestination`).
 * @param options.allowPrivate `webhooks.allow_private_networks`; if true, `localhost` and non-public addresses are
 *   valid
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

/** Returns the host without IPv6 brackets: a name in lower case and punycode, or an address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

/**
 * `URL.canParse` is not used. On Node 20 and 22, it wrongly returns false for `https://bücher.example` after V8 has
 * compiled its caller.
 */
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

/**
 * Returns whether the authority ends in a dot. This is checked before parsing, because the parser removes a dot after
 * an IPv4 address. IDNA accepts three more characters as a dot.
 */
function endsInDot(authority: string): boolean {
  return /[.\u3002\uff0e\uff61](?::[0-9]*)?$/.test(authority)
}

/** Checks the length limits of RFC 1035 §2.3.4 and the punycode, because the parser checks neither. */
function isValidHost(hostname: string): boolean {
  if (hostname.startsWith('[')) return true
  return hostname.length <= 253 && hostname.split('.').every(isValidLabel)
}

function isValidLabel(label: string): boolean {
  if (label.length < 1 || label.length > 63) return false
  return !label.startsWith('xn--') || isPunycode(label)
}

/**
 * Returns whether a label in punycode can be decoded. If it cannot, `domainToUnicode` returns an empty text on Node 20
 * and 22, and the label on Node 24 and later.
 */
function isPunycode(label: string): boolean {
  const decoded = domainToUnicode(label)
  return decoded !== label && domainToASCII(decoded) === label
}

/** Returns whether the host may be public. RFC 6761 §6.3 reserves `localhost` and every name under it for loopback. */
function isPublicHost(url: URL): boolean {
  const host = hostOf(url)
  return isIP(host) === 0 ? !/(?:^|\.)localhost$/.test(host) : isPublic(host)
}
