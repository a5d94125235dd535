// The paths that the gateway serves itself, matched before every route (CONTRACT §2).
import { isGatewayPath } from '../config/formats/path-pattern.ts'
import type { Operation } from '../openapi/operation.ts'
import type { Endpoint } from './endpoint.ts'

export const jwksPath = '/.well-known/jwks.json'

/** The path of an endpoint. */
interface LocalPath {
  readonly path: string
  /** As listed in `Allow`. */
  readonly methods: readonly string[]
  /** A route declared at exactly this path replaces it. */
  readonly isReplaceable: boolean
  /** Methods whose endpoint the configuration has switched off: as if there were no such path. */
  readonly switchedOff: readonly string[]
}

/** The gateway's own endpoints under one configuration, without the JWKS. */
export interface LocalEndpoints {
  /**
   * The endpoint at a path; `unknown` when the path is reserved but has no endpoint; undefined for all other paths.
   * @param segments decoded once and case-folded, as for matching requests
   */
  find(segments: readonly string[]): LocalPath | 'unknown' | undefined
  /** The endpoint of an operation. */
  get(operation: Operation): Endpoint
}

/**
 * @param replaceable endpoints that a declared route may replace
 * @param switchedOff operations of `endpoints` that the configuration has switched off
 */
export function createEndpointTable(
  endpoints: readonly Endpoint[],
  replaceable: readonly Endpoint[],
  switchedOff: readonly Operation[],
): LocalEndpoints {
  const paths: LocalPath[] = [
    ...pathsOf(endpoints, false, switchedOff),
    ...pathsOf(replaceable, true, []),
    { path: jwksPath, methods: ['GET', 'HEAD'], isReplaceable: false, switchedOff: [] },
  ]
  const byPath = new Map(paths.map(local => [local.path, local]))
  const byOperation = new Map([...endpoints, ...replaceable].map(endpoint => [endpoint.operation, endpoint]))
  return {
    find(segments) {
      // All reserved paths start with one of two segments, and most requests start with neither.
      if (segments[0] !== 'api' && segments[0] !== '.well-known') return undefined
      const found =
        byPath.get(`/${segments.join('/')}`) ?? byPath.get(`/${segments.slice(0, -1).join('/')}/:id`)
      if (found !== undefined) return found
      return isGatewayPath(segments) ? 'unknown' : undefined
    },
    get(operation) {
      const endpoint = byOperation.get(operation)
      if (endpoint === undefined) throw new Error(`no endpoint ${operation.id}`)
      return endpoint
    },
  }
}

/** Their paths, each once with all of its methods. */
function pathsOf(
  endpoints: readonly Endpoint[],
  isReplaceable: boolean,
  switchedOff: readonly Operation[],
): LocalPath[] {
  const paths = new Map<string, { methods: string[]; switchedOff: string[] }>()
  for (const { operation } of endpoints) {
    const { path, method } = operation
    const known = paths.get(path) ?? { methods: [], switchedOff: [] }
    paths.set(path, known)
    const list = switchedOff.includes(operation) ? known.switchedOff : known.methods
    list.push(...(method === 'GET' ? ['GET', 'HEAD'] : [method]))
  }
  return [...paths].map(([path, known]) => ({ path, isReplaceable, ...known }))
}
