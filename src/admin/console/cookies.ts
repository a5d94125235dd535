// The console's cookie: one name for browsers that came by HTTPS, one for the others (CONTRACT §13, "Console").

const secureName = '__Host-peage-console'
const plainName = 'peage-console'

/** How long a session of the console lasts, from its sign-in. */
export const sessionTtlSeconds = 8 * 3_600

/**
 * The values of the cookie that fits, in the order received. A cookie knows no port: another server of the same host
 * may have set one of the same name.
 * @param header `Cookie` as node:http joins it
 */
export function readCookies(header: string | undefined, isSecure: boolean): string[] {
  const wanted = isSecure ? secureName : plainName
  return (header ?? '').split(';').flatMap(pair => {
    const [name = '', ...value] = pair.trim().split('=')
    return name === wanted ? [value.join('=')] : []
  })
}

/** A `Set-Cookie` value. @param value empty: clears it */
export function writeCookie(value: string, isSecure: boolean): string {
  const maxAge = value === '' ? 0 : sessionTtlSeconds
  const [name, secure] = isSecure ? [secureName, '; Secure'] : [plainName, '']
  return `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${secure}`
}

/**
 * Takes the console's cookies out of a `Cookie` value, whatever their letter case: cookies know no ports, so browsers
 * send them to the client listener too, whose upstreams must not have an operator's session.
 * @returns the rest; empty if nothing is left
 */
export function withoutConsoleCookies(header: string): string {
  if (!mayContain.test(header)) return header
  return header
    .split(';')
    .filter(pair => !isConsoleName.test(pair))
    .join(';')
    .trim()
}

const mayContain = /peage-console/i
const isConsoleName = /^\s*(?:__host-)?peage-console\s*(?:=|$)/i
