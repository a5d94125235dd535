// The paths that the gateway answers itself, before every route (CONTRACT §2).
import { covers, ownedPatterns } from '../config/formats/path-pattern.ts'
import type { Operation } from '../openapi/operation.ts'
import { type authOperations, authPrefix } from './auth.openapi.ts'
import type { Endpoint } from './auth.ts'
import { type GuardedEndpoint, type OwnPath, pathsOf } from './endpoint.ts'

export const jwksPath = '/.well-known/jwks.json'

export interface OwnPaths {
  /**
   * The endpoint at a path, `unknown` where nothing is there but the path is ours, or nothing of ours.
   * @param segments decoded once and folded, as requests are matched
   */
  find(segments: readonly string[]): OwnPath | 'unknown' | undefined
}

/** Whatever the gateway answers itself, the JWKS aside. */
export interface OwnEndpoints {
  /** By the last segment of their path. */
  readonly auth: Readonly<Record<keyof typeof authOperations, Endpoint>>
  readonly user: readonly GuardedEndpoint[]
  /** A declared route may replace them. */
  readonly upgrade: readonly GuardedEndpoint[]
}

/** The one of a configuration's endpoints that does what was described. */
export function guardedEndpoint({ user, upgrade }: OwnEndpoints, operation: Operation): GuardedEndpoint {
  const found = [...user, ...upgrade].find(endpoint => endpoint.operation === operation)
  if (found === undefined) throw new Error(`no endpoint ${operation.id}`)
  return found
}

export function createOwnPaths({ auth, user, upgrade }: OwnEndpoints): OwnPaths {
  const served: OwnPath[] = [
    ...Object.keys(auth).map(name => ({ path: `${authPrefix}/${name}`, methods: ['POST'] })),
    ...pathsOf(user),
    ...pathsOf(upgrade).map(path => ({ ...path, isReplaceable: true })),
    { path: jwksPath, methods: ['GET', 'HEAD'] },
  ]
  const byPath = new Map(served.map(own => [own.path, own]))
  return {
    find(segments) {
      // Everything of ours lies below one of two first segments, and most requests below neither.
      if (segments[0] !== 'api' && segments[0] !== '.well-known') return undefined
      const found = byPath.get(`/${segments.join('/')}`)
      if (found !== undefined) return found
      const pattern = {
        segments: segments.map(value => ({ kind: 'literal' as const, value })),
        wildcard: false,
      }
      return ownedPatterns.some(owned => covers(owned, pattern)) ? 'unknown' : undefined
    },
  }
}
