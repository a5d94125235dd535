// Mail addresses: one mailbox of RFC 5321, and nothing that a mail library or server could read as two.

/**
 * Whether the text is one `Mailbox` (RFC 5321 §4.1.2), in ASCII. A quoted local part may not hold what lists of
 * addresses are made of: no comma, semicolon or angle bracket.
 */
export function isMailbox(text: string): boolean {
  const at = text.lastIndexOf('@')
  const [local, domain] = [text.slice(0, at), text.slice(at + 1)]
  return at > 0 && local.length <= 64 && text.length <= 254 && isLocalPart(local) && isDomain(domain)
}

function isLocalPart(text: string): boolean {
  return dotString.test(text) || quotedString.test(text)
}

function isDomain(text: string): boolean {
  if (literal.test(text)) return true
  return text.split('.').every(label => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(label))
}

const dotString = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i
const quotedString = /^"([ !#-+\--:=?-[\]-~]|\\[ -+\--:=?-~])+"$/
/** `[192.0.2.1]`, `[IPv6:2001:db8::1]`. */
const literal = /^\[(\d{1,3}(\.\d{1,3}){3}|IPv6:[0-9a-f:.]{2,45})\]$/i
