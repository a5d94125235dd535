// Parses the addresses of Postgres and Redis. The drivers parse each address again. An address is accepted only if the
// drivers accept it too, and read the same user, password and host from it.
import { FormatError } from './units.ts'

/**
 * Parses a Postgres address with a host. An empty text means the embedded database. If the host is only in `?host=`,
 * `localhost` is added, because the URL parser needs a host. The added host has no effect, because libpq and the driver
 * prefer `?host=`.
 */
export function parsePostgres(text: string): string {
  if (text === '') return text
  const { scheme, userInfo, host, rest } = readAddress(text, postgres)
  const options = new URLSearchParams(/\?.*/s.exec(rest)?.[0])
  const named = options.get('host') ?? ''
  if (named.includes(',')) throw new FormatError(postgres.oneHost)
  const isComplete = !/^(:|$)/.test(host)
  if (!isComplete && named === '' && (userInfo !== '' || host !== '' || rest === '')) {
    throw new FormatError(
      'must have a host, such as postgres://user@db.internal/name or postgres://user@/name?host=/run/postgresql',
    )
  }
  const port = options.get('port')
  if (port !== null && !isPort(port)) throw new FormatError(expectedPort)
  if (
    options.get('uselibpqcompat') === 'true' &&
    options.get('sslmode') === 'verify-ca' &&
    !options.get('sslrootcert')
  ) {
    throw new FormatError('must have sslrootcert (the CA file), because sslmode=verify-ca needs it')
  }
  const address =
    isComplete || `${userInfo}${host}` === '' ? text : `${scheme}://${userInfo}localhost${host}${rest}`
  if (!URL.canParse(address)) throw new FormatError(postgres.expected)
  return address
}

interface Kind {
  readonly schemes: RegExp
  readonly expected: string
  /** The error message for an address with several hosts. */
  readonly oneHost: string
}

const postgres: Kind = {
  schemes: /^postgres(ql)?$/,
  expected: 'must be a postgres:// address, or empty for the embedded database',
  oneHost: 'must have exactly one host; use the primary, or an address that leads to the primary',
}

export function parseRedis(text: string): string {
  if (text === '') return text
  const { host } = readAddress(text, redis)
  if (host === '' || !URL.canParse(text)) throw new FormatError(redis.expected)
  // The path and the option `db` may contain only a number. ioredis would send any other text to Redis as the database
  // number. Redis would refuse it, and the process would exit.
  const { pathname, searchParams } = new URL(text)
  if (!/^(\/[0-9]{0,5})?$/.test(pathname) || !/^[0-9]{0,5}$/.test(searchParams.get('db') ?? '')) {
    throw new FormatError('allows only a database number after the /')
  }
  return text
}

const redis: Kind = {
  schemes: /^rediss?$/,
  expected: 'must be a redis:// or rediss:// address, or empty for no Redis',
  oneHost:
    'must have exactly one host; for several hosts, use { cluster: […] } or { sentinels: […], name: … }',
}

/** Parses one cluster node or sentinel, written as `host:port` or as a `redis://` address. Returns the address. */
export function parseRedisNode(text: string): string {
  const address = text.includes('://') ? text : `redis://${text}`
  const { host } = readAddress(address, node)
  if (host === '' || !URL.canParse(address)) throw new FormatError(node.expected)
  if (!['', '/'].includes(new URL(address).pathname)) {
    throw new FormatError(
      'must not have a database number; with several nodes, the gateway always uses database 0',
    )
  }
  return address
}

const node: Kind = {
  schemes: redis.schemes,
  expected: 'must be HOST:PORT or a redis:// or rediss:// address',
  oneHost: 'must have exactly one host; write each node as a separate entry',
}

interface Address {
  readonly scheme: string
  /** The user and password, with the `@` after them. Empty if the address has none. */
  readonly userInfo: string
  /** The host with its port. */
  readonly host: string
  /** The path and the query. */
  readonly rest: string
}

/**
 * Splits an address into its parts. Refuses each character that must be percent-encoded (RFC 3986 §2.1 and 3.2.1),
 * because URL parsers repair some of these characters in different ways.
 */
function readAddress(text: string, { schemes, expected, oneHost }: Kind): Address {
  if (/^["']/.test(text)) throw new FormatError('starts with a quotation mark; write the address without it')
  const [, scheme = '', userInfo = '', host = '', rest = ''] =
    /^([^:/?#]*):\/\/([^/?#]*@)?([^/?#]*)(.*)$/s.exec(text) ?? []
  if (!schemes.test(scheme)) throw new FormatError(expected)
  if (text.includes('#')) throw new FormatError('contains a #; percent-encode it as %23')
  if (!isPercentEncoded(text)) {
    throw new FormatError('contains a % that does not start an escape such as %2F; percent-encode it as %25')
  }
  if (/["']/.test(userInfo)) {
    throw new FormatError(
      'contains a quotation mark in user or password; percent-encode it (" is %22 and \' is %27)',
    )
  }
  if (/[\s\p{Cc}]/u.test(text))
    throw new FormatError('contains white space; percent-encode it (a space is %20)')
  // If the password contains an unencoded / or ?, the text before this character counts as the host. The rest of the
  // password then becomes part of the path or an option.
  if (/^[^=]*@/.test(rest)) {
    throw new FormatError(
      'contains a / or a ? in user or password; percent-encode it (/ is %2F and ? is %3F)',
    )
  }
  if (host.includes(',')) throw new FormatError(oneHost)
  const [, port] = /:([^:\]]*)$/.exec(host) ?? []
  if (port !== undefined && port !== '' && !isPort(port)) throw new FormatError(expectedPort)
  return { scheme, userInfo, host, rest }
}

const expectedPort = 'must have a port from 1 to 65535'

function isPort(text: string): boolean {
  return /^[0-9]{1,5}$/.test(text) && Number(text) > 0 && Number(text) <= 65_535
}

function isPercentEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
