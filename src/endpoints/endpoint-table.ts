// Finds the gateway's own endpoint for a path. The gateway searches its own endpoints before it searches the routes.
import { isGatewayPath } from '../config/formats/path-pattern.ts'
import type { Operation } from '../openapi/operation.ts'
import type { LocalEndpoint } from './local-endpoint.ts'

export interface LocalPath {
  readonly path: string
  /** The endpoint of each method. The header `Allow` lists these methods. */
  readonly endpoints: ReadonlyMap<string, LocalEndpoint>
  /** Whether a route declared at exactly this path replaces the endpoints. */
  readonly isReplaceable: boolean
  /**
   * The methods whose endpoint is switched off in the configuration. A request with one of these methods gets the same
   * response as a request for an unknown path.
   */
  readonly switchedOff: readonly string[]
}

/**
 * Returns the local path that matches. Returns `unknown` if the path is reserved but has no endpoint, and undefined for
 * all other paths.
 * @param segments the segments of the path, percent-decoded once and lower-cased, as for route matching
 */
export type FindLocalPath = (segments: readonly string[]) => LocalPath | 'unknown' | undefined

/** @param replaceable the endpoints that a declared route may replace */
export function createEndpointTable(
  endpoints: readonly LocalEndpoint[],
  replaceable: readonly LocalEndpoint[],
  switchedOff: readonly Operation[],
): FindLocalPath {
  const byPath = new Map([...pathsOf(endpoints, false, switchedOff), ...pathsOf(replaceable, true, [])])
  /** The third segment of each path: `auth`, `user` and `subscription`; undefined for `/.well-known/jwks.json`. */
  const thirds = new Set([...byPath.keys()].map(path => path.split('/')[3]))
  return segments => {
    // Most requests need no lookup, because the first or third segment shows that the path is no gateway path.
    if (segments[0] !== 'api' && segments[0] !== '.well-known') return undefined
    if (!thirds.has(segments[2])) return undefined
    const found =
      byPath.get(`/${segments.join('/')}`) ??
      byPath.get(`/${segments.slice(0, -1).join('/')}/:id`) ??
      byPath.get(`/${segments.slice(0, -2).join('/')}/:id/${segments.at(-1)}`)
    if (found !== undefined) return found
    return isGatewayPath(segments) ? 'unknown' : undefined
  }
}

interface ServedMethods {
  readonly endpoints: Map<string, LocalEndpoint>
  readonly switchedOff: string[]
}

function pathsOf(
  endpoints: readonly LocalEndpoint[],
  isReplaceable: boolean,
  switchedOff: readonly Operation[],
): [string, LocalPath][] {
  const paths = new Map<string, ServedMethods>()
  for (const endpoint of endpoints) {
    const { path, method, refusesHead } = endpoint.operation
    const known: ServedMethods = paths.get(path) ?? { endpoints: new Map(), switchedOff: [] }
    paths.set(path, known)
    for (const served of method === 'GET' && !refusesHead ? ['GET', 'HEAD'] : [method]) {
      if (switchedOff.includes(endpoint.operation)) known.switchedOff.push(served)
      else known.endpoints.set(served, endpoint)
    }
  }
  // If all endpoints of a path are off, the path is left out, because a 405 would have an empty header `Allow`.
  return [...paths].flatMap(([path, known]) =>
    known.endpoints.size === 0 ? [] : [[path, { path, isReplaceable, ...known }]],
  )
}
