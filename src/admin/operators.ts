// Maps a bearer token to its operator in constant time: the delay must not reveal how much of a guess is right.
import { hash, timingSafeEqual } from 'node:crypto'
import type { OperatorRole, TokenConfig } from '../config/sections/admin.ts'

/** The bearer of one token of the configuration. */
export interface Operator {
  /** The name of the token. */
  readonly name: string
  readonly may: OperatorRole
  /** SHA-256 of the token. */
  readonly digest: Buffer
}

export interface Operators {
  /** The operator whose token an `Authorization` value has. */
  find(authorization: string | undefined): Operator | undefined
  findByToken(token: string): Operator | undefined
  /** Whoever has the token with this SHA-256 now: its name and role may have changed, or it may be gone. */
  findByDigest(digest: Buffer): Operator | undefined
  readonly hasAny: boolean
}

/** @param tokens tokens by name; empty tokens are ignored */
export function createOperators(tokens: Readonly<Record<string, TokenConfig>>): Operators {
  const operators = Object.entries(tokens)
    .filter(([, { token }]) => token !== '')
    .map(([name, { token, may }]): Operator => ({ name, may, digest: digestOf(token) }))
  // Compares all of them, whichever matches, to keep the time constant.
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

/** Hashes to a fixed length, which `timingSafeEqual` needs. */
function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
