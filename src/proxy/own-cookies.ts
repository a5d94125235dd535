// Removes the cookies of the gateway from requests to upstreams.
import { consoleCookie } from '../admin/console/cookies.ts'
import { signInCookie } from '../providers/attempt-cookies.ts'

/**
 * Removes the cookies of the console and of sign-ins from a `Cookie` value. The letter case of their names does not
 * matter. Cookies do not depend on the port, so browsers also send the console's cookie to the client listener.
 * Upstreams must not receive an operator's session or a sign-in in progress.
 */
export function withoutOwnCookies(header: string): string {
  if (!mayContain.test(header)) return header
  return header
    .split(';')
    .filter(pair => !isOwnName.test(pair))
    .join(';')
    .trim()
}

const mayContain = new RegExp(`${consoleCookie}|${signInCookie}`, 'i')
const isOwnName = new RegExp(`^\\s*(?:__host-)?(?:${consoleCookie}|${signInCookie}[^=]*)\\s*(?:=|$)`, 'i')
