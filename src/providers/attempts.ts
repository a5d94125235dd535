// Stores sign-ins that a browser has started, in encrypted cookies of the browser.
import { randomBytes } from 'node:crypto'
import { EncryptJWT, jwtDecrypt } from 'jose'
import type { Clock } from '../clock.ts'
import { attemptTtlSeconds, type Cookie, cookieName, readCookies, writeCookie } from './attempt-cookies.ts'

/** The parameters of the request that starts a sign-in, and the identity provider as configured at that time. */
export interface StartedSignIn {
  /** The name in `auth.providers`. */
  readonly provider: string
  readonly issuer: string
  readonly clientId: string
  readonly returnUrl: string
  /** The `state` that the page sent. The page gets it back after the sign-in. */
  readonly pageState: string
  /** The S256 code challenge that the page sent (RFC 7636). */
  readonly codeChallenge: string
}

/** A sign-in with its secrets. Each secret has 43 base64url characters. */
export interface Attempt extends StartedSignIn {
  readonly state: string
  readonly nonce: string
  /** The code verifier that the gateway sends to the provider (RFC 7636). The page has its own code verifier. */
  readonly codeVerifier: string
}

export interface Attempts {
  /**
   * Creates the secrets and the cookie of a sign-in.
   * @param cookieHeader the `Cookie` header of the browser
   * @returns the `Set-Cookie` values: the new cookie, and the deletion of old cookies; undefined if `pageState` is too
   *   long for a cookie
   */
  begin(
    started: StartedSignIn,
    cookieHeader: string | undefined,
  ): Promise<{ readonly attempt: Attempt; readonly setCookies: readonly string[] } | undefined>
  /**
   * Returns the sign-in that this browser has started with this `state`; undefined if there is none, or if it has
   * expired.
   * @param state the parameter `state` of the callback
   */
  find(cookieHeader: string | undefined, state: string): Promise<Attempt | undefined>
  /** Returns the `Set-Cookie` value that deletes the cookie. */
  end(attempt: Attempt): string
}

interface Options {
  /** Returns keys of 32 bytes. The first key encrypts, and every key decrypts. */
  keys(): Promise<readonly Buffer[]>
  readonly clock: Clock
  /** Whether browsers reach the gateway over HTTPS. */
  readonly isSecure: boolean
}

/** The maximum number of unfinished sign-ins in one browser, including the new sign-in. */
const maxAttempts = 4
/** The maximum size of a cookie with its attributes. Browsers ignore larger cookies. */
const maxCookieBytes = 4_096
/**
 * The maximum total size of the sign-in cookies of one browser. Any page can start sign-ins with a long `state`. Four
 * cookies of the maximum size would exceed the limit for request headers (16 KiB). The gateway would then refuse every
 * request of the browser.
 */
const maxTotalBytes = 8_192

/** Distinguishes the cookie from everything else that may be encrypted with the same key. */
const typ = 'sign-in-attempt+jwt'

export function createAttempts({ keys, clock, isSecure }: Options): Attempts {
  async function seal(attempt: Attempt): Promise<string> {
    const [key] = await keys()
    const issuedAt = Math.floor(clock.now() / 1_000)
    return new EncryptJWT({ ...attempt, iat: issuedAt, exp: issuedAt + attemptTtlSeconds })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', typ })
      .encrypt(key as Buffer)
  }

  async function open(value: string): Promise<(Attempt & { readonly iat: number }) | undefined> {
    const options = { typ, currentDate: new Date(clock.now()) }
    for (const key of await keys()) {
      const opened = await jwtDecrypt<Attempt & { iat: number }>(value, key, options).catch(() => undefined)
      if (opened !== undefined) return opened.payload
    }
    return undefined
  }

  /**
   * Returns the names of the cookies to delete: the oldest cookies that do not fit in addition to a new cookie of
   * `newBytes`.
   */
  async function surplus(cookies: readonly Cookie[], newBytes: number): Promise<string[]> {
    const dated = await Promise.all(
      cookies.map(async ({ name, value }) => ({
        name,
        bytes: name.length + value.length,
        startedAt: (await open(value))?.iat ?? 0,
      })),
    )
    // The start times are whole seconds. Within the same second, the order in the request header decides, because
    // browsers send older cookies first (RFC 6265 §5.4).
    const newestFirst = dated.reverse().sort((a, b) => b.startedAt - a.startedAt)
    let total = newBytes
    return newestFirst.flatMap(({ name, bytes }, index) => {
      total += bytes
      return index >= maxAttempts - 1 || total > maxTotalBytes ? [name] : []
    })
  }

  return {
    async begin(started, cookieHeader) {
      const attempt = { ...started, state: secret(), nonce: secret(), codeVerifier: secret() }
      const name = cookieName(attempt.state, isSecure)
      const cookie = writeCookie({ name, value: await seal(attempt) })
      if (cookie.length > maxCookieBytes) return undefined
      const names = await surplus(readCookies(cookieHeader, isSecure), cookie.length)
      return { attempt, setCookies: [...names.map(old => writeCookie({ name: old, value: '' })), cookie] }
    },
    async find(cookieHeader, state) {
      const name = cookieName(state, isSecure)
      // Tries each cookie with this name, because another server on the same host may have set one too.
      for (const cookie of readCookies(cookieHeader, isSecure)) {
        const attempt = cookie.name === name ? await open(cookie.value) : undefined
        if (attempt?.state === state) return attempt
      }
      return undefined
    },
    end: ({ state }) => writeCookie({ name: cookieName(state, isSecure), value: '' }),
  }
}

function secret(): string {
  return randomBytes(32).toString('base64url')
}
