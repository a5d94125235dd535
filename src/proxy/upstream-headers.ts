// Builds the request headers for the upstream. The client's forbidden headers are dropped, and the gateway's headers
// are added.
import type { IncomingMessage } from 'node:http'
import { canonicalName } from '../config/formats/header-names.ts'
import { carriesGatewayCredential, isGatewayApiKey } from '../gate/guards/credential.ts'
import { nextMaxForwards } from '../gate/parsing/max-forwards.ts'
import type { RequestHead } from '../gate/parsing/request-head.ts'
import type { RequestTarget } from '../gate/parsing/request-target.ts'
import { parseOfferedProtocols } from '../gate/parsing/websocket-handshake.ts'
import type { Route } from '../gate/routing/route.ts'
import type { Identity } from '../identity/identity.ts'
import type { RequestTrace } from '../observability/tracing/tracing.ts'
import { addIdentity } from './identity-headers.ts'
import { withoutOwnCookies } from './own-cookies.ts'
import { type HeaderKind, headerKind } from './request-header-kind.ts'

/** The source of the headers. RequestContext implements this interface. */
export interface ReceivedRequest {
  readonly request: IncomingMessage
  readonly head: RequestHead
  readonly requestId: string
  /** The upstream receives the `traceparent` of this trace, not the client's. */
  readonly trace: Pick<RequestTrace, 'isContinued'> | undefined
}

/**
 * Builds the headers. Host is first. If the trace is propagated, `traceparent` is second. The values of these two
 * headers are placeholders, which `forward` replaces.
 * @param assertion the signed identity, on routes with `identity_assertion`
 * @returns alternating names and values, as undici and node:http accept them
 */
export function buildUpstreamHeaders(
  received: ReceivedRequest,
  { route, target }: { readonly route: Route; readonly target: RequestTarget },
  identity: Identity,
  assertion?: string,
): string[] {
  const { request, head, trace } = received
  const named = connectionOptions(request)
  const fields: string[] = ['host', setByForward]
  if (trace !== undefined && propagatesTrace(route)) fields.push('traceparent', setByForward)
  // The identity comes before the client's headers, because some servers keep only the first thousand headers.
  addIdentity(fields, route, identity, assertion)
  const { requestRules: rules } = route
  if (rules !== undefined) fields.push(...rules.set)
  const ours = fields.length
  const proxied: Forwarded = { for: '', proto: '', host: '', prefix: '', via: '' }
  const raw = request.rawHeaders
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    const kind = headerKind(name)
    if (named?.has(name.toLowerCase()) && droppableByConnection.has(kind)) continue
    if (kind === 'pass' || isForwarded(kind, value, head, route)) {
      fields.push(name, value)
    } else if (kind === 'sec-websocket-protocol') {
      const { others } = parseOfferedProtocols(value)
      if (others.length > 0) fields.push(name, others.join(', '))
    } else if (kind === 'cookie') {
      const rest = withoutOwnCookies(value)
      if (rest !== '') fields.push(name, rest)
    } else if (kind === 'max-forwards') {
      fields.push(name, nextMaxForwards(request.method, value))
    } else {
      collectProxied(proxied, kind, name, value, head.peerIsTrusted)
    }
  }
  addForwarded(fields, received, route, target, proxied)
  const remaining = rules === undefined ? fields : without(rules.remove, fields, ours)
  return trace === undefined ? remaining : without(trace.isContinued ? ofParent : ofTrace, remaining, ours)
}

/**
 * Returns whether the upstream receives the trace. It does not if the route removes or sets `traceparent`, for example
 * because the upstream is a third-party service.
 */
export function propagatesTrace({ requestRules }: Route): boolean {
  return requestRules?.remove.has('traceparent') !== true
}

/** The client's trace headers to drop. `tracestate` is kept only if the gateway continues the client's trace. */
const ofParent = new Set(['traceparent'])
const ofTrace = new Set(['traceparent', 'tracestate'])

/**
 * The kinds of headers that the gateway drops if the client lists them in `Connection`. Other kinds are not dropped,
 * because they contain the identity, delimit the body, or are set by the gateway.
 */
const droppableByConnection = new Set<HeaderKind>([
  'pass',
  'cookie',
  'max-forwards',
  'authorization',
  'x-api-key',
  'sec-websocket-protocol',
])

/** A placeholder, because the target and its Host are chosen when the request is sent. */
const setByForward = ''

/** @param from the index of the first header to examine; earlier headers stay */
function without(names: ReadonlySet<string>, fields: string[], from: number): string[] {
  const remaining = fields.slice(0, from)
  for (let i = from; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (!names.has(canonicalName(name))) remaining.push(name, fields[i + 1] as string)
  }
  return remaining
}

/**
 * The values of the headers that proxies in front of the gateway have sent. They are merged with the gateway's own
 * values.
 */
interface Forwarded {
  for: string
  proto: string
  host: string
  prefix: string
  via: string
}

const setByUs = new Set(['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-prefix'])

/** Returns whether the upstream receives a header of a kind that is passed on only for some routes or requests. */
function isForwarded(kind: HeaderKind, value: string, head: RequestHead, route: Route): boolean {
  switch (kind) {
    case 'content-length':
      // This header delimits the body. So it is passed on even if `Connection` lists it.
      return head.hasBody
    case 'authorization':
      return route.forward_credentials || (route.auth === 'none' && !carriesGatewayCredential(value))
    case 'x-api-key':
      return (
        route.forward_credentials ||
        (route.auth === 'none' && !isGatewayApiKey(value) && !carriesGatewayCredential(value))
      )
    default:
      return false
  }
}

function collectProxied(
  proxied: Forwarded,
  kind: HeaderKind,
  name: string,
  value: string,
  trusted: boolean,
): void {
  if (kind === 'via') proxied.via = join(proxied.via, value)
  if (kind !== 'forwarded' || !trusted) return
  switch (name.toLowerCase()) {
    case 'x-forwarded-for':
      proxied.for = join(proxied.for, value)
      break
    case 'x-forwarded-proto':
      proxied.proto = value
      break
    case 'x-forwarded-host':
      proxied.host = value
      break
    case 'x-forwarded-prefix':
      proxied.prefix = value
      break
  }
}

function addForwarded(
  fields: string[],
  { request, head, requestId }: ReceivedRequest,
  route: Route,
  target: RequestTarget,
  proxied: Forwarded,
): void {
  if (head.peerIsTrusted) passTrusted(fields, request.rawHeaders)
  const proto = 'encrypted' in request.socket ? 'https' : 'http'
  fields.push(
    'x-forwarded-for',
    join(proxied.for, head.peer),
    'x-forwarded-proto',
    proxied.proto === '' ? proto : proxied.proto,
  )
  const host = proxied.host === '' ? (target.authority ?? head.host) : proxied.host
  if (host !== '') fields.push('x-forwarded-host', host)
  const prefix = route.strippedPrefix(target) ?? proxied.prefix
  if (prefix !== '') fields.push('x-forwarded-prefix', prefix)
  fields.push('x-request-id', requestId, 'via', join(proxied.via, `${request.httpVersion} peage`))
}

/** Passes `Forwarded` and similar headers of a trusted proxy unchanged, except the headers that the gateway sets. */
function passTrusted(fields: string[], raw: readonly string[]): void {
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    if (headerKind(name) !== 'forwarded' || setByUs.has(name.toLowerCase())) continue
    fields.push(name, raw[i + 1] as string)
  }
}

/** Returns the names that `Connection` declares hop-by-hop (RFC 9110 §7.6.1); undefined for `keep-alive` or `close`. */
function connectionOptions(request: IncomingMessage): Set<string> | undefined {
  const value = request.headers.connection
  if (value === undefined || value === 'keep-alive' || value === 'close') return undefined
  return new Set(
    value
      .toLowerCase()
      .split(',')
      .map(option => option.trim()),
  )
}

function join(before: string, value: string): string {
  return before === '' ? value : `${before}, ${value}`
}
