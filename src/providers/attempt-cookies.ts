// Reads and writes the cookies of sign-ins that a browser has started. Each sign-in has its own cookie.

/** The prefix of the cookie names over HTTP. Over HTTPS, `__Host-` comes before this prefix. */
export const signInCookie = 'peage-signin-'
/** Browsers accept a cookie with this prefix only over HTTPS, and only from the host itself (RFC 6265bis). */
const securePrefix = `__Host-${signInCookie}`

/** How long a sign-in may take. */
export const attemptTtlSeconds = 600

export interface Cookie {
  readonly name: string
  readonly value: string
}

/** @param state the `state` that the gateway sends to the provider */
export function cookieName(state: string, isSecure: boolean): string {
  return (isSecure ? securePrefix : signInCookie) + state.slice(0, 8)
}

/**
 * Returns the cookies of sign-ins for this scheme (HTTPS or HTTP), in the order received. Several cookies may have the
 * same name.
 */
export function readCookies(header: string | undefined, isSecure: boolean): Cookie[] {
  const prefix = isSecure ? securePrefix : signInCookie
  return (header ?? '').split(';').flatMap(pair => {
    const [name = '', ...value] = pair.trim().split('=')
    // A name may contain only these characters, because names are later written into `Set-Cookie`.
    const isOurs = name.startsWith(prefix) && /^[\w-]{8}$/.test(name.slice(prefix.length))
    return isOurs ? [{ name, value: value.join('=') }] : []
  })
}

/** Returns a `Set-Cookie` value. An empty value deletes the cookie. */
export function writeCookie({ name, value }: Cookie): string {
  // The callback is a navigation from the site of the provider. For such a navigation, browsers send cookies with
  // `SameSite=Lax`, not cookies with `SameSite=Strict`.
  const secure = name.startsWith(securePrefix) ? '; Secure' : ''
  const maxAge = value === '' ? 0 : attemptTtlSeconds
  return `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`
}
