// Removes the cookies of the gateway from requests to upstreams.

/**
 * Removes the cookies of the console and of sign-ins from a `Cookie` value, whatever the letter case of their names.
 * Cookies do not depend on the port, so browsers also send the console's cookie to the client listener. Upstreams must
 * not receive an operator's session or a sign-in in progress.
 */
export function withoutOwnCookies(header: string): string {
  if (!mayContain.test(header)) return header
  return header
    .split(';')
    .filter(pair => !isOwnName.test(pair))
    .join(';')
    .trim()
}

const mayContain = /peage-(?:console|signin)/i
const isOwnName = /^\s*(?:__host-)?peage-(?:console|signin-[^=]*)\s*(?:=|$)/i
