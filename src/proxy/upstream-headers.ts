// The header fields an upstream receives: the client's, less what it must not say, plus what only we may (CONTRACT §6).
import type { IncomingMessage } from 'node:http'
import { canonicalName } from '../config/formats/header-names.ts'
import { carriesGatewayCredential, isGatewayApiKey } from '../gate/guards/credential.ts'
import { normalizeAddress } from '../gate/parsing/client-address.ts'
import type { RequestHead } from '../gate/parsing/request-head.ts'
import type { RequestTarget } from '../gate/parsing/request-target.ts'
import { parseOfferedProtocols } from '../gate/parsing/websocket-handshake.ts'
import type { Route } from '../gate/routing/route.ts'
import type { Identity } from '../identity/identity.ts'
import type { RequestTrace } from '../observability/tracing/tracing.ts'
import { type HeaderKind, headerKind } from './header-kind.ts'

/** What the headers are made of; a RequestContext is one. */
export interface ReceivedRequest {
  readonly request: IncomingMessage
  readonly head: RequestHead
  readonly requestId: string
  /** Its upstream is told of it, and not of the client's place in it. */
  readonly trace: Pick<RequestTrace, 'isContinued'> | undefined
}

/**
 * @param assertion who calls, signed, where the route asks for it
 * @returns names and values in turn, as undici and node:http take them; Host first, and `traceparent` next where the
 * upstream is told of the trace, both for `forward` to fill in
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
  addIdentity(fields, route, identity, assertion)
  const { requestRules: rules } = route
  if (rules !== undefined) fields.push(...rules.set)
  const ours = fields.length
  const proxied: Forwarded = { for: '', proto: '', host: '', via: '' }
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
    } else {
      collectProxied(proxied, kind, name, value, head.peerIsTrusted)
    }
  }
  addForwarded(fields, received, route, target, proxied)
  const kept = rules === undefined ? fields : without(rules.remove, fields, ours)
  return trace === undefined ? kept : without(trace.isContinued ? ofParent : ofTrace, kept, ours)
}

/** Unless its rules remove the field, or set it: a service of somebody else's need not know. */
export function propagatesTrace({ requestRules }: Route): boolean {
  return requestRules?.remove.has('traceparent') !== true
}

/** What the client says of its trace; all of it is void where it does not say its own place in it. */
const ofParent = new Set(['traceparent'])
const ofTrace = new Set(['traceparent', 'tracestate'])

/** What `Connection` can name away: neither who calls nor what frames the body, and none of ours. */
const droppableByConnection = new Set<HeaderKind>([
  'pass',
  'authorization',
  'x-api-key',
  'sec-websocket-protocol',
])

/** Which target it goes to is chosen as it is sent, and its Host set then. */
const setByForward = ''

/** @param from what stands before it stays */
function without(names: ReadonlySet<string>, fields: string[], from: number): string[] {
  const kept = fields.slice(0, from)
  for (let i = from; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (!names.has(canonicalName(name))) kept.push(name, fields[i + 1] as string)
  }
  return kept
}

/** What proxies before us said, to be extended rather than passed. */
interface Forwarded {
  for: string
  proto: string
  host: string
  via: string
}

const setByUs = new Set(['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-prefix'])

/** Fields that are neither always passed nor always dropped. */
function isForwarded(kind: HeaderKind, value: string, head: RequestHead, route: Route): boolean {
  switch (kind) {
    case 'content-length':
      // Not for `Connection` to name away: it frames the body.
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
  }
}

/** Before all that the client chose: a server that keeps the first thousand fields only must not lose them. */
function addIdentity(fields: string[], route: Route, identity: Identity, assertion?: string): void {
  if (identity.kind !== 'user') return
  fields.push('x-user-id', String(identity.user.id), 'x-user-plan', identity.user.plan)
  if (route.forward_email) fields.push('x-user-email', fieldSafe(identity.user.email))
  if (assertion !== undefined) fields.push('x-peage-assertion', assertion)
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
    join(proxied.for, normalizeAddress(request.socket.remoteAddress ?? '')),
    'x-forwarded-proto',
    proxied.proto === '' ? proto : proxied.proto,
  )
  const host = proxied.host === '' ? (target.authority ?? head.host) : proxied.host
  if (host !== '') fields.push('x-forwarded-host', host)
  const prefix = route.strippedPrefix(target)
  if (prefix !== undefined) fields.push('x-forwarded-prefix', prefix)
  fields.push('x-request-id', requestId, 'via', join(proxied.via, `${request.httpVersion} peage`))
}

/** `Forwarded` and its kin go on as a trusted proxy wrote them; what we set ourselves is not among them. */
function passTrusted(fields: string[], raw: readonly string[]): void {
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    // By canonical name: the proxy vouches for `X-Forwarded-For`, not for a client's `x_forwarded_for` beside it.
    if (headerKind(name) !== 'forwarded' || setByUs.has(canonicalName(name))) continue
    fields.push(name, raw[i + 1] as string)
  }
}

/** The names that `Connection` declares hop by hop (RFC 9110 §7.6.1); nothing for the usual `keep-alive`. */
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

/** Field values are ASCII here: an email may hold more, and is percent-encoded then, as in a mailto URI. */
function fieldSafe(text: string): string {
  return text.replace(/[^\x21-\x24\x26-\x7e]/gu, character => encodeURIComponent(character))
}

function join(before: string, value: string): string {
  return before === '' ? value : `${before}, ${value}`
}
