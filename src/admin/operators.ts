// Which operator a bearer token names; compared in constant time, so that no answer's delay tells how much of it was right.
import { createHash, timingSafeEqual } from 'node:crypto'

export interface Operators {
  /** The name under which the token of an `Authorization` value stands, or nothing. */
  find(authorization: string | undefined): string | undefined
}

/** @param tokens tokens by name */
export function createOperators(tokens: ReadonlyMap<string, string>): Operators {
  const known = [...tokens].map(([name, token]) => ({ name, digest: digest(token) }))
  return {
    find(authorization) {
      const token = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
      if (token === undefined) return undefined
      const presented = digest(token)
      // All are compared, whichever fits.
      return known.filter(operator => timingSafeEqual(operator.digest, presented)).at(0)?.name
    },
  }
}

/** Of one length whatever the token's. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
