// Parses the address and the secret of `events`.
import { FormatError } from './units.ts'

const expectedUrl = 'must be an http:// or https:// address such as https://billing.internal/events'

/**
 * Parses the address that receives events. Empty means that no events are sent. The gateway uses the address unchanged,
 * so it must be valid as written.
 */
export function parseEventUrl(text: string): string {
  if (text === '') return text
  const [, authority] = /^https?:\/\/([^/?#\\]+)([/?#].*)?$/i.exec(text) ?? []
  if (authority === undefined || !/^[\x21-\x7e]+$/.test(text) || !URL.canParse(text))
    throw new FormatError(expectedUrl)
  if (authority.includes('@')) throw new FormatError('must not have user info (user:password@)')
  if (text.includes('#')) throw new FormatError('must not have a fragment')
  if (new URL(text).port === '0') throw new FormatError('must not have port 0')
  return text
}

/** The limits for the length of the decoded key, as in Standard Webhooks. */
const minSecretBytes = 24
const maxSecretBytes = 64

/** Parses `whsec_` followed by base64, or an empty text for no secret. Error messages never contain the secret. */
export function parseEventSecret(text: string): string {
  if (text === '') return text
  const [, base64] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  const key = Buffer.from(base64 ?? '', 'base64')
  if (base64 === undefined || key.toString('base64') !== base64) {
    throw new FormatError(
      'must be whsec_ followed by base64, such as the output of: echo whsec_$(openssl rand -base64 32)',
    )
  }
  if (key.length < minSecretBytes || key.length > maxSecretBytes) {
    throw new FormatError(`must have ${minSecretBytes} to ${maxSecretBytes} bytes, in base64, after whsec_`)
  }
  return text
}
