// Which operator a bearer token names; compared in constant time, so that no answer's delay tells how much of it was right.
import { hash, timingSafeEqual } from 'node:crypto'

export interface Operators {
  /**
   * The name under which the token of an `Authorization` value stands, or nothing.
   * @param scheme `Basic` for what people open in a browser, which can send no other: any name, and the token
   */
  find(authorization: string | undefined, scheme?: 'Bearer' | 'Basic'): string | undefined
  /** Whether there are any. */
  readonly hasAny: boolean
}

/** @param tokens tokens by name; an empty one is none */
export function createOperators(tokens: Readonly<Record<string, string>>): Operators {
  const digests = Object.entries(tokens)
    .filter(([, token]) => token !== '')
    .map(([name, token]) => ({ name, digest: digest(token) }))
  return {
    hasAny: digests.length > 0,
    find(authorization, scheme = 'Bearer') {
      const token =
        bearerToken(authorization) ?? (scheme === 'Basic' ? basicPassword(authorization) : undefined)
      if (token === undefined) return undefined
      const presented = digest(token)
      // All are compared, whichever fits.
      return digests.filter(operator => timingSafeEqual(operator.digest, presented)).at(0)?.name
    },
  }
}

function bearerToken(authorization = ''): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1]
}

/** RFC 7617: a name may hold no colon, a password may. */
function basicPassword(authorization = ''): string | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(authorization) ?? []
  if (encoded === undefined) return undefined
  return /^[^:]*:(.+)$/s.exec(Buffer.from(encoded, 'base64').toString())?.[1]
}

/** Of one length whatever the token's. */
function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
