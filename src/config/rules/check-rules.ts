// Checks the rules that concern several parts of a configuration. Valid parts are checked even if other parts are
// invalid.
import { appendToPointer, type Diagnostic } from '../diagnostics.ts'
import { everyOrigin } from '../formats/addresses.ts'
import { covers, ownedByGateway, type PathPattern, parsePathPattern } from '../formats/path-pattern.ts'
import type { RouteInput } from '../sections/schema.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, type YamlSource } from '../yaml/yaml-source.ts'
import { checkOperators } from './admin-rules.ts'
import {
  type DeclaredRoute,
  type DeclaredUpstream,
  declaredRoutes,
  declaredUpstreams,
  type SameService,
  sharedTargets,
  validTargets,
} from './declarations.ts'
import { declaredPlans } from './declared-plans.ts'
import {
  checkForwardAuth,
  checkForwardAuthRoute,
  forwardAuthPattern,
  missingUpstream,
} from './forward-auth-rules.ts'
import { checkHeaders } from './header-rules.ts'
import { checkHostBypasses } from './host-bypass.ts'
import { checkKeySecrets } from './key-rules.ts'
import { checkPathBypasses } from './path-bypass.ts'
import { checkCallers, checkPlans, checkPlansOfRoutes } from './plan-rules.ts'
import { checkProviders } from './provider-rules.ts'
import { checkRouteConflicts } from './route-conflicts.ts'
import { checkListeners, checkWorkers } from './server-rules.ts'
import { checkTlsIsUsed } from './tls.ts'
import { unknownNameMessages } from './unknown-name.ts'

/** @param validation shows which parts are already known to be invalid; the rules skip these parts */
export function checkRules(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const upstreams = declaredUpstreams(yaml)
  const checkUpstream = upstreamChecker(upstreams?.map(({ name }) => name))
  const plans = declaredPlans(yaml, validation)
  const routes = declaredRoutes(yaml, validation, plans)
  const isSameService = createSameService(upstreams ?? [], validation)
  const checkOwner = ownerChecker(forwardAuthPattern(yaml, validation))
  return [
    ...routes.flatMap(route => [
      ...checkUpstream(route),
      ...checkForwardAuthRoute(route),
      ...checkOwner(route),
      ...checkGuards(route),
      ...checkRewriting(route),
      ...checkWebSocket(route),
      ...checkHeaders(route),
    ]),
    ...checkRouteConflicts(routes),
    ...checkPlans(yaml, validation, plans),
    ...checkPlansOfRoutes(yaml, routes, plans),
    ...checkCallers(yaml, validation, plans),
    ...checkHostBypasses(routes, isSameService, plans),
    ...checkPathBypasses(routes, isSameService),
    ...checkCors(yaml, validation),
    ...checkForwardAuth(yaml, validation),
    ...checkTlsIsUsed(yaml, validation),
    ...checkWorkers(yaml, validation),
    ...checkStorage(yaml, validation),
    ...checkOperators(yaml, validation),
    ...checkKeySecrets(yaml, validation),
    ...checkProviders(yaml, validation),
    ...checkEvents(yaml, validation),
    ...checkListeners(yaml, validation),
  ]
}

/** Two upstreams are the same service only if they share a valid target. Invalid targets are ignored. */
function createSameService(upstreams: readonly DeclaredUpstream[], validation: Validation): SameService {
  return sharedTargets(
    new Map(
      upstreams.map(upstream => [
        upstream.name,
        validTargets(upstream, validation).map(({ origin }) => origin),
      ]),
    ),
  )
}

/** @param names the declared upstreams; `undefined` if the section is invalid */
function upstreamChecker(names: readonly string[] | undefined): (route: DeclaredRoute) => Diagnostic[] {
  const declared = new Set(names)
  const unknownUpstream = unknownNameMessages('upstream', names ?? [])
  return route => {
    const { upstream } = route.keys
    if (upstream === undefined) return missingUpstream(route)
    if (names === undefined || declared.has(upstream)) return []
    return [route.diagnostic('upstream', unknownUpstream(upstream))]
  }
}

/**
 * @param questions the paths at which proxies ask whether to forward a request; undefined without `server.forward_auth`
 */
function ownerChecker(questions: PathPattern | undefined): (route: DeclaredRoute) => Diagnostic[] {
  return route => {
    const { pattern } = route
    if (pattern === undefined) return []
    const isQuestion = questions !== undefined && covers(questions, pattern)
    if (!isQuestion && !ownedByGateway(pattern)) return []
    const owner = isQuestion ? 'server.forward_auth.path' : 'the gateway itself'
    return [route.diagnostic('path', `is reserved for ${owner}; choose another path`)]
  }
}

/**
 * Refuses `scope` together with `bearer_only`. With `auth: none`, refuses the route keys that need a user, except
 * `quota`, which `checkPlansOfRoutes` checks.
 */
function checkGuards(route: DeclaredRoute): Diagnostic[] {
  const { auth, scope, bearer_only, plans, verified, free_daily, forward_email, identity_assertion } =
    route.keys
  if (auth !== 'none') {
    if (scope === undefined || !bearer_only) return []
    const message =
      'cannot be combined with scope, because the route then accepts no API key; keep one of them'
    return [route.diagnostic('bearer_only', message)]
  }
  const without: (keyof RouteInput)[] = []
  if (scope !== undefined) without.push('scope')
  if (bearer_only) without.push('bearer_only')
  if (plans !== undefined) without.push('plans')
  if (verified) without.push('verified')
  if (free_daily) without.push('free_daily')
  if (forward_email) without.push('forward_email')
  if (identity_assertion) without.push('identity_assertion')
  return without.map(key =>
    route.diagnostic(key, 'needs a signed-in user; set auth to required or optional, or remove this key'),
  )
}

/** The WebSocket handshake is a GET request (RFC 6455 §4.1). */
function checkWebSocket(route: DeclaredRoute): Diagnostic[] {
  const { websocket, methods } = route.keys
  if (!websocket || methods === undefined || methods.includes('GET')) return []
  return [
    route.diagnostic('websocket', 'needs GET in methods, because the WebSocket handshake is a GET request'),
  ]
}

function checkRewriting(route: DeclaredRoute): Diagnostic[] {
  const { strip_prefix, rewrite } = route.keys
  const diagnostics: Diagnostic[] = []
  if (strip_prefix !== undefined && rewrite !== undefined) {
    diagnostics.push(route.diagnostic('rewrite', 'cannot be combined with strip_prefix; keep one of them'))
  }
  if (route.pattern === undefined) return diagnostics
  if (strip_prefix !== undefined && !isLiteralPrefix(parsePathPattern(strip_prefix), route.pattern)) {
    diagnostics.push(route.diagnostic('strip_prefix', 'must match literal segments at the start of the path'))
  }
  if (rewrite !== undefined) {
    const sentPattern = parsePathPattern(rewrite)
    if (sentPattern.wildcard && !route.pattern.wildcard) {
      diagnostics.push(route.diagnostic('rewrite', 'ends with /*, but the path does not'))
    }
    const known = paramsOf(route.pattern)
    for (const name of paramsOf(sentPattern).filter(name => !known.includes(name))) {
      diagnostics.push(
        route.diagnostic(
          'rewrite',
          `contains :${name}, but the path has no such parameter${listParams(known)}`,
        ),
      )
    }
  }
  return diagnostics
}

function isLiteralPrefix(prefix: PathPattern, path: PathPattern): boolean {
  const literal = prefix.segments.every(segment => segment.kind === 'literal')
  const head = { segments: path.segments.slice(0, prefix.segments.length), wildcard: false }
  return literal && !prefix.wildcard && covers(prefix, head)
}

function paramsOf({ segments }: PathPattern): string[] {
  return segments.flatMap(segment => (segment.kind === 'param' ? [segment.name] : []))
}

function listParams(names: readonly string[]): string {
  return names.length === 0 ? '' : ` (it has ${names.map(name => `:${name}`).join(', ')})`
}

function checkCors(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { server, routes } = yaml.value as { server?: unknown; routes?: unknown }
  const sections: [unknown, string][] = [[server, '/server']]
  if (Array.isArray(routes)) {
    for (const [index, route] of routes.entries()) sections.push([route, appendToPointer('/routes', index)])
  }
  return sections.flatMap(([section, pointer]) => {
    const corsPointer = appendToPointer(pointer, 'cors')
    const { cors } = (section ?? {}) as { cors?: { origins?: unknown; credentials?: unknown } | null }
    if (cors?.credentials !== true || !validation.isValid(appendToPointer(corsPointer, 'credentials')))
      return []
    // With credentials for every origin, any web page could send requests as the signed-in user and read the responses.
    if (!Array.isArray(cors.origins) || !cors.origins.includes(everyOrigin)) return []
    const message = 'cannot be true for every origin (*); list the origins that may send credentials'
    return [diagnosticAt(yaml, appendToPointer(corsPointer, 'credentials'), message)]
  })
}

/** Without a secret, anyone who reaches the service could forge events. */
function checkEvents(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { events } = yaml.value as { events?: { url?: unknown; secret?: unknown } | null }
  if (!events?.url || events.secret !== '') return []
  if (!validation.isValid('/events/url') || !validation.isValid('/events/secret')) return []
  const pointer = yaml.locations.has('/events/secret') ? '/events/secret' : '/events'
  return [
    diagnosticAt(
      yaml,
      pointer,
      'a secret is required if events.url is set; generate one with: echo whsec_$(openssl rand -base64 32)',
    ),
  ]
}

/** With only `postgres_listen`, the gateway would use the embedded database instead of the intended server. */
function checkStorage(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const { storage } = yaml.value as { storage?: { postgres?: string; postgres_listen?: string } | null }
  const pointer = '/storage/postgres_listen'
  if (!storage?.postgres_listen || storage.postgres !== '') return []
  if (!validation.isValid('/storage/postgres') || !validation.isValid(pointer)) return []
  return [
    diagnosticAt(yaml, pointer, 'is only for notifications; also set storage.postgres to the same database'),
  ]
}
