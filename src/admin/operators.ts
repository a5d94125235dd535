// Finds the operator of a bearer token in constant time. The response time must not reveal how much of a guess is
// correct.
import { hash, timingSafeEqual } from 'node:crypto'
import type { OperatorRole, TokenConfig } from '../config/sections/admin.ts'

export interface Operator {
  /** The name of the token. */
  readonly name: string
  readonly may: OperatorRole
  /** SHA-256 of the token. */
  readonly digest: Buffer
}

export interface Operators {
  /** Returns the operator to whom the token in an `Authorization` value belongs. */
  find(authorization: string | undefined): Operator | undefined
  findByToken(token: string): Operator | undefined
  /**
   * Finds the operator by the SHA-256 of the token. The operator's name and role may have changed since the SHA-256 was
   * computed. Returns undefined if the token was removed.
   */
  findByDigest(digest: Buffer): Operator | undefined
  readonly hasAny: boolean
}

/** @param tokens the configured tokens by name; empty tokens are ignored */
export function createOperators(tokens: Readonly<Record<string, TokenConfig>>): Operators {
  const operators = Object.entries(tokens)
    .filter(([, { token }]) => token !== '')
    .map(([name, { token, may }]): Operator => ({ name, may, digest: digestOf(token) }))
  // Compares all tokens, even after a match, to keep the time constant.
  const findByDigest = (digest: Buffer) =>
    operators.filter(operator => timingSafeEqual(operator.digest, digest)).at(0)
  const findByToken = (token: string) => findByDigest(digestOf(token))
  return {
    hasAny: operators.length > 0,
    findByToken,
    findByDigest,
    find(authorization) {
      const token = bearerToken(authorization)
      return token === undefined ? undefined : findByToken(token)
    },
  }
}

function bearerToken(authorization = ''): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1]
}

/** Hashes the token to the fixed length that `timingSafeEqual` needs. */
function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
