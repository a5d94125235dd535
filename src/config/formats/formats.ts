// Lists the text formats of the schema, each with a noun, a parser, and a rough pattern for editors.
import { METHODS } from 'node:http'
import { nearest } from '../did-you-mean.ts'
import * as addresses from './addresses.ts'
import { parseOrigin, parseUpgradeUrl } from './addresses.ts'
import { parseEventSecret, parseEventUrl } from './events.ts'
import { parseCodeTtl, parseContact, parseMailLink, parseProduct, parseSender, parseSmtp } from './mail.ts'
import { PathPatternError, parsePathPattern } from './path-pattern.ts'
import { parseIssuer, parsePublicUrl, parseReturnUrl } from './sign-in.ts'
import { parsePostgres, parseRedis, parseRedisNode } from './store-addresses.ts'
import {
  FormatError,
  parseAge,
  parseAllowance,
  parseDuration,
  parseLifetime,
  parseLookUpInterval,
  parsePercent,
  parseRate,
  parseSessionMax,
  parseSize,
} from './units.ts'

interface Format {
  /** The noun that completes the error message "must be …". Editors show it as the title. */
  readonly noun: string
  /** This pattern is only in the committed JSON Schema, for text editors. The gateway validates with `parse`. */
  readonly pattern: string
  /** @throws FormatError */
  readonly parse: (text: string) => unknown
}

export const formats = {
  duration: {
    noun: 'a duration such as 250ms, 30s, 15m or 2h',
    pattern: '^[0-9]+(ms|s|m|h|d)$',
    parse: parseDuration,
  },
  look_up_interval: {
    noun: 'a duration from 1s to 1h',
    pattern: '^[0-9]+(ms|s|m|h)$',
    parse: parseLookUpInterval,
  },
  age: {
    noun: 'a duration such as 5m, or 0 for no limit',
    pattern: '^(0|[0-9]+(ms|s|m|h|d))$',
    parse: parseAge,
  },
  lifetime: { noun: 'a duration such as 15m or 30d', pattern: '^[0-9]+(ms|s|m|h|d)$', parse: parseLifetime },
  session_max: {
    noun: 'a duration such as 12h or 90d, or 0 for no limit',
    pattern: '^(0|[0-9]+(ms|s|m|h|d))$',
    parse: parseSessionMax,
  },
  percent: { noun: 'a percentage such as 50%', pattern: '^[0-9]+%$', parse: parsePercent },
  size: { noun: 'a size such as 64KiB or 10MiB', pattern: '^[0-9]+(B|KiB|MiB|GiB)$', parse: parseSize },
  rate: {
    noun: 'a rate such as 300/1m, or 0 for no limit',
    pattern: '^(0|[0-9]+/[0-9]+(ms|s|m|h|d))$',
    parse: parseRate,
  },
  allowance: {
    noun: 'an allowance such as 100/day or 1000/month, or unlimited, or 0',
    pattern: '^(0|unlimited|[1-9][0-9]{0,9}/(day|month))$',
    parse: parseAllowance,
  },
  listen: {
    noun: 'HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080',
    pattern: '^(\\[[0-9A-Fa-f:.]+\\]|[^:]+):[0-9]+$',
    parse: addresses.parseListen,
  },
  network: {
    noun: 'an IP address or a CIDR, such as 10.0.0.0/8',
    pattern: '^[0-9A-Fa-f:.]+(/[0-9]+)?$',
    parse: addresses.parseNetwork,
  },
  host: {
    noun: 'a host name such as api.example.com',
    pattern: '^[\\x21-\\x7e]+$',
    parse: addresses.parseHost,
  },
  route_host: {
    noun: 'a host name such as api.example.com, or a wildcard such as *.example.com, in ASCII',
    pattern: '^(\\*\\.)?[\\x21-\\x29\\x2b-\\x7e]+$',
    parse: addresses.parseRouteHost,
  },
  origin: {
    noun: 'an origin such as https://app.example.com, or * for every origin',
    pattern: '^(\\*|[A-Za-z][A-Za-z0-9+.-]*://[^/?#@\\s]+)$',
    parse: parseOrigin,
  },
  target: {
    noun: 'an address such as http://127.0.0.1:9000',
    pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+/?$',
    parse: addresses.parseTarget,
  },
  postgres: {
    noun: 'a postgres:// address, or empty for the embedded database',
    pattern: '^$|^postgres(ql)?://',
    parse: parsePostgres,
  },
  redis: {
    noun: 'a redis:// or rediss:// address, or empty for no Redis',
    pattern: '^$|^rediss?://',
    parse: parseRedis,
  },
  redis_node: { noun: 'HOST:PORT or a redis:// address', pattern: '^\\S+$', parse: parseRedisNode },
  upgrade_url: {
    noun: 'an http:// or https:// address such as https://pay.example.com/checkout?user={user_id}&plan={plan}, or empty for no payment page',
    pattern: '^$|^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@{}]+([/?#]|$)',
    parse: parseUpgradeUrl,
  },
  smtp: {
    noun: 'an smtps:// or smtp:// address (for example smtps://user:password@smtp.example.com), "log" to print mails, or empty for no mails',
    pattern: '^$|^log$|^smtps?://',
    parse: parseSmtp,
  },
  sender: {
    noun: 'a sender such as Péage <no-reply@example.com>',
    pattern: '^$|@',
    parse: parseSender,
  },
  product: {
    noun: 'a name on one line, of at most 100 characters',
    pattern: '^[^\\x00-\\x1f\\x7f]{0,100}$',
    parse: parseProduct,
  },
  contact: {
    noun: 'an email address or an https:// address',
    pattern: '^$|@|^[Hh][Tt][Tt][Pp][Ss]://',
    parse: parseContact,
  },
  mail_link: {
    noun: 'an https:// address with {token}, such as https://app.example.com/reset#token={token}',
    pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@{}]+.*\\{token\\}',
    parse: parseMailLink,
  },
  code_ttl: { noun: 'a duration from 1s to 30d', pattern: '^[0-9]+(ms|s|m|h|d)$', parse: parseCodeTtl },
  token: { noun: 'a token of at least 16 characters', pattern: '^$|^[\\x21-\\x7e]{16,}$', parse: parseToken },
  secret: {
    noun: 'a secret of at least 16 characters, or empty for none',
    pattern: '^$|^[\\s\\S]{16,}$',
    parse: parseSecret,
  },
  event_url: {
    noun: 'an http:// or https:// address such as https://billing.internal/events, or empty for no events',
    pattern: '^$|^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+([/?][^#]*)?$',
    parse: parseEventUrl,
  },
  event_secret: {
    noun: 'a secret such as whsec_… (24 to 64 bytes in base64), or empty for none',
    pattern: '^$|^whsec_[A-Za-z0-9+/]+={0,2}$',
    parse: parseEventSecret,
  },
  issuer: {
    noun: 'an https:// address such as https://accounts.google.com',
    pattern: '^$|^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+(/[^?#]*)?$',
    parse: parseIssuer,
  },
  public_url: {
    noun: 'an origin such as https://api.example.com',
    pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+/?$',
    parse: parsePublicUrl,
  },
  return_url: {
    noun: 'an https:// address such as https://app.example.com/signed-in',
    pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@]+(/[^?#]*)?$',
    parse: parseReturnUrl,
  },
  method: { noun: 'an HTTP method such as GET', pattern: '^[A-Z-]+$', parse: parseMethod },
  request: {
    noun: 'a method and a path such as GET /api/v1/courses/1',
    pattern: '^[A-Z-]+ +\\S+$',
    parse: parseRequest,
  },
  path: { noun: 'a path such as /api/v1/courses/*', pattern: '^/', parse: parsePath },
  literal_path: {
    noun: 'a path of literal segments such as /.peage/authorize',
    pattern: '^(/[^/?#*:]+)+$',
    parse: parseLiteralPath,
  },
  rewrite: { noun: 'a path such as /v2/races/*', pattern: '^/', parse: parseRewrite },
  request_path: { noun: 'a path such as /health', pattern: '^/', parse: parseRequestPath },
} as const satisfies Record<string, Format>

export type FormatName = keyof typeof formats

export function formatError(format: FormatName, text: string): string | undefined {
  try {
    formats[format].parse(text)
    return undefined
  } catch (error) {
    if (error instanceof FormatError) return error.message || `must be ${formats[format].noun}`
    throw error
  }
}

/** Parses a bearer token for an operator. Its characters must be allowed in a header. Empty means no token. */
function parseToken(text: string): string {
  if (text === '') return text
  if (text.length < 16)
    throw new FormatError('is shorter than 16 characters; use a long random token (openssl rand -base64 32)')
  if (!/^[\x21-\x7e]+$/.test(text)) throw new FormatError('must be printable ASCII without spaces')
  return text
}

/**
 * Parses a secret. An attacker with a copy of the database can try out secrets offline. The key derivation makes
 * each try expensive, so a random secret of the minimum length is safe.
 */
function parseSecret(text: string): string {
  if (text !== '' && text.length < 16) {
    throw new FormatError('is shorter than 16 characters; use a long random secret (openssl rand -base64 32)')
  }
  return text
}

/** CONNECT is refused because it requests a tunnel, not a path. */
function parseMethod(text: string): string {
  const known = METHODS.filter(method => method !== 'CONNECT')
  if (known.includes(text)) return text
  if (text === 'CONNECT')
    throw new FormatError('must not be CONNECT, because the gateway does not forward tunnels')
  if (known.includes(text.toUpperCase()))
    throw new FormatError(`must be in upper case: ${text.toUpperCase()}`)
  const near = nearest(text, known)
  throw new FormatError(
    `must be an HTTP method such as GET${near === undefined ? '' : `; did you mean ${near}?`}`,
  )
}

/** Accepts every request line that HTTP allows, even if the gateway refuses it. A test case may expect the refusal. */
function parseRequest(text: string): { method: string; path: string } {
  const [, method, path] = /^([^ ]+) +([^ ]+)$/.exec(text) ?? []
  if (method === undefined || path === undefined)
    throw new FormatError('must be a method and a path such as GET /api/v1/courses/1')
  parseMethod(method)
  if (!/^(\/|https?:\/\/[^/?#])/i.test(path)) throw new FormatError('must have a path that starts with /')
  if (!/^[\x21-\x7e]+$/.test(path))
    throw new FormatError('contains a character outside printable ASCII; percent-encode it')
  return { method, path }
}

function parsePath(text: string): string {
  try {
    parsePathPattern(text)
    return text
  } catch (error) {
    if (error instanceof PathPatternError) throw new FormatError(error.message)
    throw error
  }
}

/** Parses a path that a request must match byte for byte. */
function parseLiteralPath(text: string): string {
  if (/[^\x21-\x7e]/.test(text))
    throw new FormatError('contains a character outside printable ASCII; percent-encode it')
  const { segments, wildcard } = parsePathPattern(parsePath(text))
  if (segments.length === 0 || wildcard || segments.some(({ kind }) => kind === 'param'))
    throw new FormatError('must consist of literal segments, for example /.peage/authorize')
  if (text.endsWith('/')) throw new FormatError('must not end with a slash')
  return text
}

/** Parses the path and query of a request that the gateway itself sends. */
function parseRequestPath(text: string): string {
  if (!/^\/[\x21-\x7e]*$/.test(text) || text.includes('#')) {
    throw new FormatError('must be a path such as /health, percent-encoded and without a fragment')
  }
  return text
}

/** The gateway sends this path to the upstream exactly as written. Only `:param` and `*` are replaced. */
function parseRewrite(text: string): string {
  if (/[^\x21-\x7e]/.test(text))
    throw new FormatError('contains a character outside printable ASCII; percent-encode it')
  return parsePath(text)
}
