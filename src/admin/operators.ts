// Maps a bearer token to its operator in constant time: the delay must not reveal how much of a guess is right.
import { hash, timingSafeEqual } from 'node:crypto'

export interface Operators {
  /**
   * The name of the token in an `Authorization` value, or undefined.
   * @param scheme `Basic` for pages that people open in a browser, which can send no other: any user name, with the
   * token as password
   */
  find(authorization: string | undefined, scheme?: 'Bearer' | 'Basic'): string | undefined
  readonly hasAny: boolean
}

/** @param tokens tokens by name; empty tokens are ignored */
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
      // Compares all of them, whichever matches, to keep the time constant.
      return digests.filter(operator => timingSafeEqual(operator.digest, presented)).at(0)?.name
    },
  }
}

function bearerToken(authorization = ''): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1]
}

/** RFC 7617: a user name contains no colon, a password may. */
function basicPassword(authorization = ''): string | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(authorization) ?? []
  if (encoded === undefined) return undefined
  return /^[^:]*:(.+)$/s.exec(Buffer.from(encoded, 'base64').toString())?.[1]
}

/** Hashes to a fixed length, which `timingSafeEqual` needs. */
function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
