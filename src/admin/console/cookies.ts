// Reads and writes the console's cookie. Browsers on HTTPS and on HTTP use different cookie names.

/** The name of the cookie on HTTP. On HTTPS, the name has the prefix `__Host-`. */
export const consoleCookie = 'peage-console'
const secureName = `__Host-${consoleCookie}`

/** The lifetime of a console session, from its sign-in. */
export const sessionTtlSeconds = 8 * 3_600

/**
 * Returns the values of the console's cookie for this scheme (HTTPS or HTTP), in the order received. A browser may send
 * several values. Cookies do not depend on the port, so another server on the same host may have set a cookie with the
 * same name.
 */
export function readCookies(header: string | undefined, isSecure: boolean): string[] {
  const wanted = isSecure ? secureName : consoleCookie
  return (header ?? '').split(';').flatMap(pair => {
    const [name = '', ...value] = pair.trim().split('=')
    return name === wanted ? [value.join('=')] : []
  })
}

/** Returns a `Set-Cookie` value. @param value the cookie's value; empty to clear the cookie */
export function writeCookie(value: string, isSecure: boolean): string {
  const maxAge = value === '' ? 0 : sessionTtlSeconds
  const [name, secure] = isSecure ? [secureName, '; Secure'] : [consoleCookie, '']
  return `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${secure}`
}
