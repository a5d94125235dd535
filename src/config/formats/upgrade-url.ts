// The address of the payment page, as operators write it, with `{user_id}` and `{plan}` (CONTRACT §2, §5).
import { FormatError } from './units.ts'

/**
 * As written, or empty for none. It is sent in `Location` unchanged, so it must need no repair, and the values filled
 * in must not decide where the user is sent.
 */
export function parseUpgradeUrl(text: string): string {
  if (text === '') return text
  const [, authority, rest = ''] = /^https?:\/\/([^/?#\\\s]+)(.*)$/is.exec(text) ?? []
  if (authority === undefined || !URL.canParse(text.replaceAll(/\{[^{}]*\}/g, '0')))
    throw new FormatError(expected)
  if (authority.includes('@')) throw new FormatError('must not have user info (user:password@)')
  if (/[{}]/.test(authority)) throw new FormatError('must have its placeholders after the host, not in it')
  if (/[{}]/.test(rest.replaceAll(/\{(user_id|plan)\}/g, ''))) {
    throw new FormatError('must have no other braces than the placeholders {user_id} and {plan}')
  }
  if (!/^[\x21-\x7e]+$/.test(text) || /["<>\\^`|]/.test(text)) {
    throw new FormatError('must have white space and everything that no URL holds percent-encoded')
  }
  return text
}

const expected =
  'must be an http:// or https:// address such as https://pay.example.com/checkout?user={user_id}&plan={plan}, or empty for none'
