// Checks email addresses before the gateway sends mails to them. Each must be exactly one mailbox (RFC 5321 §4.1.2).
import { isIPv4, isIPv6 } from 'node:net'

/**
 * Whether the text is exactly one mailbox in ASCII. Quoted local parts with a comma or an angle bracket are refused,
 * because careless servers end the address at these characters.
 */
export function isMailbox(email: string): boolean {
  const at = email.lastIndexOf('@')
  const [local, domain] = [email.slice(0, Math.max(at, 0)), email.slice(at + 1)]
  return email.length <= 254 && local.length <= 64 && isLocalPart(local) && isDomain(domain)
}

function isLocalPart(local: string): boolean {
  return dotString.test(local) || quotedString.test(local)
}

function isDomain(domain: string): boolean {
  if (!domain.startsWith('[') || !domain.endsWith(']')) return hostName.test(domain)
  const literal = domain.slice(1, -1)
  return isIPv4(literal) || (/^ipv6:/i.test(literal) && isIPv6(literal.slice(5)) && !literal.includes('%'))
}

const dotString = /^[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*$/
/** Printable ASCII, with `"` and `\` escaped by a backslash, and without commas and angle brackets. */
const quotedString = /^"([ !#-+\--;=?-[\]-~]|\\[ -+\--;=?-~])*"$/
const hostName = /^[a-z\d]([a-z\d-]{0,61}[a-z\d])?(\.[a-z\d]([a-z\d-]{0,61}[a-z\d])?)*$/i
