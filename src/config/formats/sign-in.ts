// Parses the addresses in the settings for the sign-in with other identity providers.
import { isLoopback } from './mail.ts'
import { FormatError } from './units.ts'

/**
 * Checks an issuer (OpenID Connect Discovery 1.0, section 2), and returns it unchanged. The discovery document and each
 * token must contain exactly this text. The issuer may be empty only for a provider without a client id.
 */
export function parseIssuer(text: string): string {
  if (text === '') return text
  const url = parseUrl(text, 'must be an https:// address such as https://accounts.google.com')
  const [, tenant = ''] = url.pathname.split('/')
  if (url.hostname === microsoftHost && sharedTenants.has(tenant.toLowerCase())) {
    throw new FormatError(
      `must name one tenant; replace ${tenant} with the ID of the tenant, because each token contains the issuer of its tenant`,
    )
  }
  return text
}

/** The host in every issuer of Microsoft Entra ID. */
export const microsoftHost = 'login.microsoftonline.com'
const sharedTenants = new Set(['common', 'organizations', 'consumers'])

/** Parses the origin where browsers reach the gateway. @returns the origin without a slash at its end */
export function parsePublicUrl(text: string): string {
  const { origin, pathname } = parseUrl(text, 'must be an origin such as https://api.example.com')
  if (pathname !== '/') throw new FormatError('must not have a path')
  return origin
}

/**
 * Checks the address of a page to which browsers return, and returns the address unchanged. Requests must contain
 * exactly this address.
 */
export function parseReturnUrl(text: string): string {
  parseUrl(text, 'must be an https:// address such as https://app.example.com/signed-in')
  if (/["<>\\^`{|}]/.test(text))
    throw new FormatError('contains a character that is not allowed in a URL; percent-encode it')
  return text
}

/** @param expected the error message if the text is not a valid http or https address */
function parseUrl(text: string, expected: string): URL {
  const [, scheme = '', authority] = /^(https?):\/\/([^/?#\\]+)/i.exec(text) ?? []
  if (authority === undefined || !/^[\x21-\x7e]+$/.test(text) || !URL.canParse(text))
    throw new FormatError(expected)
  if (scheme.toLowerCase() !== 'https' && !isLoopbackHttp(text))
    throw new FormatError('must be https (http is allowed only for loopback)')
  if (authority.includes('@')) throw new FormatError('must not have user info (user:password@)')
  if (text.includes('?')) throw new FormatError('must not have a query')
  if (text.includes('#')) throw new FormatError('must not have a fragment')
  return new URL(text)
}

/** @param url a valid URL */
export function isLoopbackHttp(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, ''))
}
