// Addresses as operators write them: listeners, trusted networks, hosts, upstreams and stores (CONTRACT §2).
import ipaddr from 'ipaddr.js'
import { FormatError } from './units.ts'

export interface ListenAddress {
  /** Without the brackets of IPv6. */
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
}

/** `127.0.0.1:8080`, `localhost:0`, `[::1]:8080`. */
export function parseListen(text: string): ListenAddress {
  const [, bracketed, name, digits] = /^(?:\[([^\]]*)\]|([^:[\]]+)):([0-9]{1,5})$/.exec(text) ?? []
  const host = bracketed ?? name
  if (host === undefined || (bracketed === undefined ? !isHostName(host) : !isIPv6(host))) {
    throw new FormatError('must be HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080')
  }
  const port = Number(digits)
  if (port > 65_535) throw new FormatError('must have a port of 0 to 65535')
  return { host, port }
}

/** An address or a CIDR, in the forms that `ipaddr.js` parses without guessing (no `127.1`, no octal). */
export function parseNetwork(text: string): string {
  const [address = '', ...rest] = text.split('/')
  if (!isIPv4(address) && !isIPv6(address)) {
    throw new FormatError('must be an IP address or a CIDR, such as 10.0.0.0/8 or 2001:db8::/32')
  }
  if (rest.length > 0 && !(/^\d{1,3}$/.test(rest.join('/')) && ipaddr.isValidCIDR(text))) {
    throw new FormatError(`must have a prefix length of 0 to ${isIPv4(address) ? 32 : 128} after the /`)
  }
  return text
}

/** A host as it is compared with requests: lower case, without port and final dot; IPv6 keeps its brackets. */
export function parseHost(text: string): string {
  const [, host = ''] = /^(\[[^\]]*\]|[^:]*?)\.?(?::[0-9]{1,5})?$/.exec(text.toLowerCase()) ?? []
  if (!(host.startsWith('[') ? isIPv6(host.slice(1, -1)) : isHostName(host))) {
    throw new FormatError('must be a host name such as api.example.com, in ASCII and without wildcards')
  }
  return host
}

/** An upstream's `http(s)://host[:port]` → its origin. Anything more would be lost or doubled when proxied. */
export function parseTarget(text: string): string {
  // The WHATWG parser repairs `http:host`, `http:\\host` and stray white space; an address must need no repair.
  const [, authority, rest] = /^https?:\/\/([^/?#\\\s\p{Cc}]+)(.*)$/iu.exec(text) ?? []
  if (authority === undefined || !URL.canParse(text)) {
    throw new FormatError('must be an address such as http://127.0.0.1:9000 or https://courses.internal')
  }
  if (authority.includes('@')) throw new FormatError('must not have user info (user:password@)')
  if (rest?.includes('?')) throw new FormatError('must not have a query')
  if (rest?.includes('#')) throw new FormatError('must not have a fragment')
  if (rest !== '' && rest !== '/') {
    throw new FormatError('must not have a path; strip_prefix or rewrite on the route changes paths')
  }
  return new URL(text).origin
}

/** A Postgres connection address, or empty for the embedded database. */
export function parsePostgres(text: string): string {
  if (text === '') return text
  if (!/^postgres(ql)?:\/\/\S/.test(text) || !URL.canParse(text)) {
    throw new FormatError('must be a postgres:// address, or empty for the embedded database')
  }
  return text
}

/** A Redis connection address, or empty for none. */
export function parseRedis(text: string): string {
  if (text === '') return text
  if (!/^rediss?:\/\/[^/\s]/.test(text) || !URL.canParse(text)) {
    throw new FormatError('must be a redis:// or rediss:// address, or empty for none')
  }
  // ioredis takes any other path for a database number, which Redis refuses, and that ends the process.
  if (!/^(\/[0-9]{0,5})?$/.test(new URL(text).pathname)) {
    throw new FormatError('must have the number of a database after the /, or nothing')
  }
  return text
}

/** One node of a cluster, or one sentinel: `host:port` or a `redis://` address → always the address. */
export function parseRedisNode(text: string): string {
  const address = text.includes('://') ? text : `redis://${text}`
  if (!/^rediss?:\/\/[^/\s]/.test(address) || !URL.canParse(address)) {
    throw new FormatError('must be HOST:PORT or a redis:// or rediss:// address')
  }
  if (!['', '/'].includes(new URL(address).pathname)) {
    throw new FormatError('must not name a database: of several nodes the first database is used')
  }
  return address
}

const isIPv4 = (text: string) => ipaddr.IPv4.isValidFourPartDecimal(text)
const isIPv6 = (text: string) => !text.includes('%') && ipaddr.IPv6.isValid(text)

/** ASCII only: an internationalized name arrives as punycode. Digits and dots alone are an IPv4 address or wrong. */
function isHostName(text: string): boolean {
  if (/^[0-9.]+$/.test(text)) return isIPv4(text)
  return (
    text.length <= 253 &&
    text.split('.').every(label => /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i.test(label))
  )
}
