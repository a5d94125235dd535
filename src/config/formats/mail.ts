// Parses the mail settings: the SMTP server's URL, the sender, and links to the application.
import { isHostName, isIPv6 } from './addresses.ts'
import { isMailbox } from './mailbox.ts'
import { FormatError, parseLifetime } from './units.ts'

/** How a connection is protected. `unchecked` uses TLS if the server offers it, and accepts any certificate. */
export type SmtpTls = 'implicit' | 'starttls' | 'unchecked' | 'off'

export interface SmtpServer {
  /** A host name or an address. An IPv6 address has no brackets. */
  readonly host: string
  readonly port: number
  readonly tls: SmtpTls
  readonly credentials?: { readonly user: string; readonly password: string }
  /** The name that the gateway sends in EHLO. By default it is the name of the machine. */
  readonly name?: string
}

export interface Sender {
  /** Empty if the sender has no name. */
  readonly name: string
  readonly address: string
}

/**
 * Parses `smtps://user:password@host:465?name=…`. With `log`, the gateway prints mails. With an empty text, it sends
 * none.
 */
export function parseSmtp(text: string): SmtpServer | 'log' | undefined {
  if (text === '') return undefined
  if (text === 'log') return 'log'
  // The URL class cannot be used, because it neither checks nor lower-cases the host of an unknown scheme.
  const [, scheme, userInfo, bracketed, named = '', port, query = ''] =
    /^(smtps?):\/\/(?:([^/?#]*)@)?(?:\[([^\]@/?#]*)\]|([^:@/?#[\]]*))(?::([0-9]{1,5}))?\/?(?:\?([^#]*))?$/.exec(
      text,
    ) ?? []
  if (/^smtps?:\/\/[^@]*[/?#].*@/.test(text)) throw new FormatError(expectedUserInfo)
  if (scheme === undefined || !(bracketed === undefined ? isHostName(named) : isIPv6(bracketed))) {
    throw new FormatError(
      'must be an smtps:// or smtp:// address (for example smtps://user:password@smtp.example.com), "log" to print mails, or empty for no mails',
    )
  }
  if (Number(port) > 65_535 || Number(port) === 0) throw new FormatError('must have a port from 1 to 65535')
  const host = (bracketed ?? named).toLowerCase()
  const { name, isOff } = readQuery(query)
  if (isOff && scheme === 'smtps')
    throw new FormatError('cannot combine smtps:// with ?tls=off; write smtp://')
  const tls = scheme === 'smtps' ? 'implicit' : isOff ? 'off' : isLoopback(host) ? 'unchecked' : 'starttls'
  const defaultPort = { implicit: 465, starttls: 587, unchecked: 25, off: 25 }[tls]
  const credentials = userInfo === undefined ? undefined : readUserInfo(userInfo)
  return {
    host,
    port: port === undefined ? defaultPort : Number(port),
    tls,
    ...(credentials === undefined ? {} : { credentials }),
    ...(name === undefined ? {} : { name }),
  }
}

/**
 * Reads the options `name` and `tls`. All other options are refused, because some options of the mail library switch
 * off security checks.
 */
function readQuery(query: string): { name: string | undefined; isOff: boolean } {
  const options = new URLSearchParams(query)
  for (const key of options.keys()) {
    if ((key !== 'name' && key !== 'tls') || options.getAll(key).length > 1) {
      throw new FormatError('allows only the options ?name=… and ?tls=off, each at most once')
    }
  }
  const [name, tls] = [options.get('name') ?? undefined, options.get('tls')]
  if (tls !== null && tls !== 'off') throw new FormatError('allows only the value off after ?tls=')
  if (name !== undefined && !isHostName(name) && !/^\[[0-9A-Fa-f:.]+\]$/.test(name)) {
    throw new FormatError('must have a host name after ?name=')
  }
  return { name, isOff: tls === 'off' }
}

function readUserInfo(text: string): { user: string; password: string } {
  const colon = text.indexOf(':')
  try {
    const user = decodeURIComponent(colon === -1 ? text : text.slice(0, colon))
    const password = colon === -1 ? '' : decodeURIComponent(text.slice(colon + 1))
    if (user === '' || password === '') throw new FormatError('must have both user and password before the @')
    if (/\p{Cc}/u.test(user + password))
      throw new FormatError('must not have control characters in user and password')
    return { user, password }
  } catch (error) {
    if (error instanceof FormatError) throw error
    throw new FormatError(expectedUserInfo)
  }
}

const expectedUserInfo =
  'must have a percent-encoded user and password (% is %25, / is %2F, # is %23, ? is %3F)'

/** @param host a name or an address, without brackets */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Parses `Péage <no-reply@example.com>` or only the address. An empty text is allowed only if no mail is sent. */
export function parseSender(text: string): Sender | undefined {
  if (text === '') return undefined
  const [, name = '', bracketed, bare] = /^(?:([^<>]*)<([^<>]*)>|([^<>]*))$/.exec(text.trim()) ?? []
  const address = (bracketed ?? bare ?? '').trim()
  if (!isMailbox(address))
    throw new FormatError('must contain an email address, such as Péage <no-reply@example.com>')
  if (/\p{Cc}/u.test(name)) throw new FormatError('must not contain control characters')
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address }
}

export function parseProduct(text: string): string | undefined {
  const name = text.trim()
  if (text === '') return undefined
  if (name === '') throw new FormatError('must contain more than white space')
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)) {
    throw new FormatError('must not contain line breaks or control characters')
  }
  if (name.length > maxProductLength)
    throw new FormatError(`must have at most ${maxProductLength} characters`)
  return name
}

/** The product name is part of the mail subject, which should fit on one line. */
const maxProductLength = 100

/** Parses the contact that mails show to users. A `mailto:` prefix is removed, and an empty text becomes undefined. */
export function parseContact(text: string): string | undefined {
  if (text === '') return undefined
  const address = text.replace(/^mailto:/i, '')
  if (isMailbox(address)) return address
  const [, authority] = /^https:\/\/([^/?#\\\s]+)/i.exec(text) ?? []
  if (authority === undefined || !URL.canParse(text)) {
    throw new FormatError(
      'must be an email address such as support@example.com, or an https:// address such as https://example.com/help',
    )
  }
  if (authority.includes('@')) throw new FormatError('must not have user info (user:password@)')
  if (!/^[\x21-\x7e]+$/.test(text) || /["<>\\^`{|}]/.test(text)) {
    throw new FormatError('contains a character that is not allowed in a URL; percent-encode it')
  }
  return text
}

/**
 * Checks a link to a page of the operator's application, and returns it unchanged. The link must contain `{token}` in
 * its path, query or fragment.
 */
export function parseMailLink(text: string): string {
  const [, scheme = '', authority, rest = ''] = /^(https?):\/\/([^/?#\\\s]+)(.*)$/is.exec(text) ?? []
  if (authority === undefined || !URL.canParse(text.replaceAll('{token}', '0')))
    throw new FormatError(expectedLink)
  const { hostname } = new URL(text.replaceAll('{token}', '0'))
  if (scheme.toLowerCase() !== 'https' && !isLoopback(hostname.replace(/^\[|\]$/g, ''))) {
    throw new FormatError(
      'must be https (http is allowed only for loopback), because anyone who reads the token can use it',
    )
  }
  if (authority.includes('@')) throw new FormatError('must not have user info (user:password@)')
  if (!rest.includes('{token}') || /[{}]/.test(authority + rest.replaceAll('{token}', ''))) {
    throw new FormatError('must contain {token} after the host, and no other braces')
  }
  if (!/^[\x21-\x7e]+$/.test(text) || /["<>\\^`|]/.test(text)) {
    throw new FormatError('contains a character that is not allowed in a URL; percent-encode it')
  }
  return text
}

const expectedLink =
  'must be an https:// address with {token}, such as https://app.example.com/reset#token={token}'

/** Parses a lifetime (1 s to 30 days) and returns it in milliseconds. */
export function parseCodeTtl(text: string): number {
  const ttlMs = parseLifetime(text)
  if (ttlMs > 30 * 86_400_000) throw new FormatError('must be at most 30d')
  return ttlMs
}
