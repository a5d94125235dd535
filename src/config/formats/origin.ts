// An origin as operators write it, and as browsers send it in `Origin` (RFC 6454 §6.2; Fetch standard, CORS).
import { FormatError } from './units.ts'

/** Stands for every origin. */
export const everyOrigin = '*'

/**
 * `https://App.example.com:443` → `https://app.example.com`, because requests' origins are compared as strings.
 * Schemes other than http and https belong to apps and browser extensions (`capacitor://localhost`).
 */
export function parseOrigin(text: string): string {
  if (text === everyOrigin) return text
  if (text.toLowerCase() === 'null') throw new FormatError('must not be null, which any sandboxed page sends')
  const [, scheme, host, rest] = originSyntax.exec(text) ?? []
  if (scheme === undefined || host === undefined) throw new FormatError(expected)
  if (host.includes('*')) throw new FormatError('must not have wildcards in it (* alone is every origin)')
  if (rest === '/') throw new FormatError('must not end in a slash: browsers send none')
  if (rest !== undefined) throw new FormatError('must not have a path, a query or a fragment')
  if (!/^https?$/i.test(scheme)) return text.toLowerCase()
  if (!isAscii.test(host) || !URL.canParse(text)) throw new FormatError(expected)
  const { hostname, origin } = new URL(text)
  // `127.1`, `[::0]`: browsers send the form that the URL standard normalizes them to.
  if (hostname !== host.toLowerCase()) throw new FormatError(`must be written ${origin}, as browsers send it`)
  return origin
}

const expected = 'must be SCHEME://HOST[:PORT], such as https://app.example.com, or * for every origin'
const originSyntax =
  /^([a-z][a-z0-9+.-]*):\/\/([^/?#@:[\]\\\s\p{Cc}]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?([/?#].*)?$/iu
const isAscii = /^[\x21-\x7e]+$/
