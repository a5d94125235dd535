// Reads and writes the cookies of sign-ins that a browser has started. Each sign-in has its own cookie.

/** How the names of the cookies begin on HTTP. On HTTPS, `__Host-` precedes it. */
export const signInCookie = 'peage-signin-'
/** Browsers accept a cookie with this prefix only over HTTPS, and only from the host itself (RFC 6265bis). */
const securePrefix = `__Host-${signInCookie}`

/** How long a sign-in may take. */
export const attemptTtlSeconds = 600

export interface Cookie {
  readonly name: string
  readonly value: string
}

/** @param state a `state` of the gateway */
export function cookieName(state: string, isSecure: boolean): string {
  return (isSecure ? securePrefix : signInCookie) + state.slice(0, 8)
}

/** Returns the cookies of sign-ins for this scheme (HTTPS or HTTP), in the order received. Names may repeat. */
export function readCookies(header: string | undefined, isSecure: boolean): Cookie[] {
  const prefix = isSecure ? securePrefix : signInCookie
  return (header ?? '').split(';').flatMap(pair => {
    const [name = '', ...value] = pair.trim().split('=')
    // Names are written into `Set-Cookie`, so they must not contain anything else.
    const isOurs = name.startsWith(prefix) && /^[\w-]{8}$/.test(name.slice(prefix.length))
    return isOurs ? [{ name, value: value.join('=') }] : []
  })
}

/** Returns a `Set-Cookie` value. An empty value deletes the cookie. */
export function writeCookie({ name, value }: Cookie): string {
  // The callback is a navigation from the provider's site. With `SameSite=Strict`, the cookie would be missing.
  const secure = name.startsWith(securePrefix) ? '; Secure' : ''
  const maxAge = value === '' ? 0 : attemptTtlSeconds
  return `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`
}
