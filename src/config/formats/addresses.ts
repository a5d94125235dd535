// Parses addresses in the configuration: listeners, trusted networks, hosts, origins, upstreams, and the payment page.
import ipaddr from 'ipaddr.js'
import { FormatError } from './units.ts'

export interface ListenAddress {
  /** A host name or an address. An IPv6 address has no brackets. */
  readonly host: string
  /** With port 0, the system chooses a free port. */
  readonly port: number
}

/** Parses `127.0.0.1:8080`, `localhost:0` or `[::1]:8080`. */
export function parseListen(text: string): ListenAddress {
  const [, bracketed, name, digits] = /^(?:\[([^\]]*)\]|([^:[\]]+)):([0-9]{1,5})$/.exec(text) ?? []
  const host = bracketed ?? name
  if (host === undefined || (bracketed === undefined ? !isHostName(host) : !isIPv6(host))) {
    throw new FormatError('must be HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080')
  }
  const port = Number(digits)
  if (port > 65_535) throw new FormatError('must have a port from 0 to 65535')
  return { host, port }
}

/** Parses an IP address or a CIDR. Ambiguous forms such as `127.1` or octal numbers are refused. */
export function parseNetwork(text: string): string {
  const [address = '', ...rest] = text.split('/')
  if (!isIPv4(address) && !isIPv6(address)) {
    throw new FormatError('must be an IP address or a CIDR, such as 10.0.0.0/8 or 2001:db8::/32')
  }
  if (rest.length > 0 && !(/^\d{1,3}$/.test(rest.join('/')) && ipaddr.isValidCIDR(text))) {
    throw new FormatError(`must have a prefix length from 0 to ${isIPv4(address) ? 32 : 128} after the /`)
  }
  return text
}

/**
 * Normalizes a host in the same way as the host of a request: lower case, without port and final dot. IPv6 keeps its
 * brackets.
 */
export function parseHost(text: string): string {
  const host = bareHost(text)
  if (!isExactHost(host)) {
    throw new FormatError('must be a host name such as api.example.com, in ASCII and without wildcards')
  }
  return host
}

/** Normalizes a host of a route: a host as for `parseHost`, or a wildcard such as `*.example.com`. */
export function parseRouteHost(text: string): string {
  const host = bareHost(text)
  if (!text.includes('*')) {
    if (!isExactHost(host)) throw new FormatError()
    return host
  }
  if (host === '*') throw new FormatError('must not be only *; to match every host, omit hosts')
  if (text.lastIndexOf('*') > 0 || !text.startsWith('*.')) {
    throw new FormatError(
      'may contain * only as the whole first label; write a wildcard such as *.example.com',
    )
  }
  const parent = host.slice(2)
  if (/^[0-9.]*$/.test(parent) || !isHostName(parent)) {
    throw new FormatError('must have a host name in ASCII after *., such as *.example.com')
  }
  return host
}

/** Returns the host in lower case, without port and final dot. Empty if the text is not HOST or HOST:PORT. */
function bareHost(text: string): string {
  return /^(\[[^\]]*\]|[^:]*?)\.?(?::[0-9]{1,5})?$/.exec(text.toLowerCase())?.[1] ?? ''
}

const isExactHost = (host: string) => (host.startsWith('[') ? isIPv6(host.slice(1, -1)) : isHostName(host))

/**
 * Parses the address of a target and returns its origin. The address must not have a path or a query, because each
 * request brings its own path and query.
 */
export function parseTarget(text: string): string {
  // The WHATWG parser repairs `http:host`, `http:\\host` and stray white space. An address that needs repair is
  // refused.
  const [, authority, rest] = /^https?:\/\/([^/?#\\\s\p{Cc}]+)(.*)$/iu.exec(text) ?? []
  if (authority === undefined || !URL.canParse(text)) {
    throw new FormatError('must be an address such as http://127.0.0.1:9000 or https://courses.internal')
  }
  if (authority.includes('@')) throw new FormatError('must not have user info (user:password@)')
  if (rest?.includes('?')) throw new FormatError('must not have a query')
  if (rest?.includes('#')) throw new FormatError('must not have a fragment')
  if (rest !== '' && rest !== '/') {
    throw new FormatError('must not have a path; to change paths, use strip_prefix or rewrite on the route')
  }
  const { port, origin } = new URL(text)
  if (port === '0') throw new FormatError('must not have port 0')
  return origin
}

/** Whether the target's host needs a DNS lookup. `localhost` does not, because it is always this machine. */
export function isLookedUp(origin: string): boolean {
  const { hostname } = new URL(origin)
  return hostname !== 'localhost' && !isIPv4(hostname) && !hostname.startsWith('[')
}

const isIPv4 = (text: string) => ipaddr.IPv4.isValidFourPartDecimal(text)
export const isIPv6 = (text: string) => !text.includes('%') && ipaddr.IPv6.isValid(text)

/**
 * Whether the text is a host name in ASCII. An internationalized name must be in punycode. A text of digits and dots
 * must be an IPv4 address.
 */
export function isHostName(text: string): boolean {
  if (/^[0-9.]+$/.test(text)) return isIPv4(text)
  return text.length <= 253 && hostName.test(text)
}

const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const hostName = new RegExp(`^(?:${label}\\.)*${label}$`, 'i')

export const everyOrigin = '*'

/**
 * Normalizes an origin to the form that browsers send in `Origin` (RFC 6454 §6.2; Fetch standard, CORS), because
 * origins are compared as strings. For example, `https://App.example.com:443` becomes `https://app.example.com`. Other
 * schemes than http and https are allowed for apps and browser extensions, for example `capacitor://localhost`.
 */
export function parseOrigin(text: string): string {
  if (text === everyOrigin) return text
  if (text.toLowerCase() === 'null')
    throw new FormatError('must not be null, because every sandboxed page sends this origin')
  const [, scheme, host, rest] = originSyntax.exec(text) ?? []
  if (scheme === undefined || host === undefined) throw new FormatError(expectedOrigin)
  if (host.includes('*'))
    throw new FormatError('must not contain a wildcard; to allow every origin, use only *')
  if (rest === '/') throw new FormatError('must not end with a slash, because browsers do not send one')
  if (rest !== undefined) throw new FormatError('must not have a path, a query or a fragment')
  if (!/^https?$/i.test(scheme)) return text.toLowerCase()
  if (!isGraphicAscii.test(host) || !URL.canParse(text)) throw new FormatError(expectedOrigin)
  const { hostname, origin } = new URL(text)
  // Browsers send hosts such as `127.1` or `[::0]` in a normalized form, so the file must contain that form.
  if (hostname !== host.toLowerCase()) throw new FormatError(`must be written ${origin}, as browsers send it`)
  return origin
}

const expectedOrigin = 'must be SCHEME://HOST[:PORT], such as https://app.example.com, or * for every origin'
const originSyntax =
  /^([a-z][a-z0-9+.-]*):\/\/([^/?#@:[\]\\\s\p{Cc}]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?([/?#].*)?$/iu
const isGraphicAscii = /^[\x21-\x7e]+$/

/**
 * Parses the address of the payment page. Empty means no payment page. The gateway sends the address unchanged in
 * `Location`, so it must be valid as written. Placeholders are not allowed in the host, so that their values cannot
 * change where the user is sent.
 */
export function parseUpgradeUrl(text: string): string {
  if (text === '') return text
  const [, authority, rest = ''] = /^https?:\/\/([^/?#\\\s]+)(.*)$/is.exec(text) ?? []
  if (authority === undefined || !URL.canParse(text.replaceAll(/\{[^{}]*\}/g, '0')))
    throw new FormatError(expectedUpgradeUrl)
  if (authority.includes('@')) throw new FormatError('must not have user info (user:password@)')
  if (/[{}]/.test(authority)) throw new FormatError('must have placeholders only after the host')
  if (/[{}]/.test(rest.replaceAll(/\{(user_id|plan)\}/g, ''))) {
    throw new FormatError('must not contain braces other than {user_id} and {plan}')
  }
  if (!isGraphicAscii.test(text) || /["<>\\^`|]/.test(text)) {
    throw new FormatError('contains a character that is not allowed in a URL; percent-encode it')
  }
  return text
}

const expectedUpgradeUrl =
  'must be an http:// or https:// address such as https://pay.example.com/checkout?user={user_id}&plan={plan}, or empty for no payment page'
