// Checks `server.forward_auth`, and the routes without an upstream. Only `server.forward_auth` allows these routes.
import type { Diagnostic } from '../diagnostics.ts'
import { type PathPattern, parsePathPattern, touchesGatewayPath } from '../formats/path-pattern.ts'
import type { RouteInput } from '../sections/schema.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'
import type { DeclaredRoute } from './declarations.ts'

/**
 * Returns a pattern for `server.forward_auth.path` and every path below it. Undefined if this path is missing or
 * invalid.
 */
export function forwardAuthPattern(yaml: YamlSource, validation: Validation): PathPattern | undefined {
  const { server } = yaml.value as { server?: { forward_auth?: { path?: unknown } | null } | null }
  const path = server?.forward_auth?.path
  if (typeof path !== 'string' || !validation.isValid(pathPointer)) return undefined
  return { ...parsePathPattern(path), wildcard: true }
}

const pathPointer = '/server/forward_auth/path'

export function checkForwardAuth(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const pattern = forwardAuthPattern(yaml, validation)
  if (pattern === undefined || !touchesGatewayPath(pattern)) return []
  const message = 'must not be above or below another path of the gateway, such as /api/v1/auth/*'
  return [diagnosticAt(yaml, pathPointer, message)]
}

/** Without `server.forward_auth`, the gateway forwards every request of a route, so the route needs an upstream. */
export function missingUpstream(route: DeclaredRoute): Diagnostic[] {
  if (route.isForwardAuthOnly || route.written.upstream !== undefined || !route.isValid(['upstream']))
    return []
  const path = `${route.label}.upstream`
  return [{ ...route.diagnosticWithin([], 'is required: the name of an upstream'), path }]
}

/** If the route has no upstream, refuses the keys that change or limit a forwarded request. */
export function checkForwardAuthRoute(route: DeclaredRoute): Diagnostic[] {
  if (!route.isForwardAuthOnly) return []
  const { keys } = route
  return keysOfUpstreams
    .filter(key => keys[key] !== undefined && keys[key] !== false)
    .map(key => route.diagnostic(key, 'has no effect without an upstream; remove this key, or add upstream'))
}

const keysOfUpstreams = [
  'strip_prefix',
  'rewrite',
  'headers',
  'timeout',
  'max_body',
  'websocket',
  'forward_credentials',
  'identity_assertion',
] as const satisfies readonly (keyof RouteInput)[]
