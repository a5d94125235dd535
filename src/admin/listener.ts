// Creates the admin listener: health for probes, metrics for Prometheus, the admin API, and the console.
import { type IncomingMessage, METHODS, maxHeaderSize } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import {
  installErrorHandlers,
  installExpectationHandler,
  type OnRefusal,
  onClientError,
  sendFastifyRefusal,
} from '../http/error-handlers.ts'
import { trackResponses } from '../http/pipelining.ts'
import { routeUpgrades } from '../http/upgrade.ts'
import { contentType } from '../observability/metrics/exposition.ts'
import { responseSchemas } from '../openapi/operation.ts'
import { schemaController } from '../openapi/response-body.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { FailureLog } from '../storage/failure-log.ts'
import type { IsAllowedAddress } from './allowed-addresses.ts'
import { type AdminDependencies, channelHeader, type OperatorRequest } from './api/admin-endpoint.ts'
import { parseQuery } from './api/input.ts'
import { refuseOtherMethods, serveApi } from './api/serve-api.ts'
import type { AuditChannel } from './audit-store.ts'
import type { ConsoleSessions } from './console/console-sessions.ts'
import { type ConsoleDependencies, findSession, serveConsole } from './console/serve-console.ts'
import { isLoopback, rejectCrossSite, rejectDnsRebinding, rejectForeignOrigin } from './cross-site.ts'
import { documentation, serveDocumentation } from './documentation.ts'
import type { Operator } from './operators.ts'
import { probes } from './probes.openapi.ts'

interface Dependencies extends AdminDependencies, ConsoleDependencies {
  /** Applies `admin.allow_from` of the current configuration. */
  isAllowedAddress: IsAllowedAddress
  consoleSessions: ConsoleSessions
  /** Returns the Prometheus metrics of this process or of all workers. */
  renderMetrics(): Promise<string>
  /** Returns the OpenAPI document. The function is called when an operator first requests the document. */
  documentation(): Promise<string>
  /** Returns the client's request id if the id is safe to use. Otherwise returns a new id. */
  requestIdFor(given: string | undefined): string
  logger: Logger
  failureLog: FailureLog
}

export function createAdminListener(dependencies: Dependencies): FastifyInstance {
  const { health, renderMetrics, requestIdFor, failureLog, isAllowedAddress, seenByBrowser } = dependencies
  const { consoleSessions: sessions } = dependencies
  const ids = new WeakMap<object, string>()
  const reasons = new WeakMap<object, string>()
  const reasonOf = (request: FastifyRequest) => reasons.get(request.raw)
  const onRefusal: OnRefusal = (request, refusal) => {
    if (refusal.reason !== undefined) reasons.set(request, refusal.reason)
    const id = ids.get(request) ?? requestIdFor(undefined)
    const fields = () => ({ request_id: id, path: request.url?.split('?')[0] })
    if (refusal.cause !== undefined) failureLog(refusal.code, refusal.cause, fields)
    return ['x-request-id', id, ...noSniffing]
  }
  const form = { language: dependencies.language, fields: noSniffing }
  const app = fastify({
    schemaController,
    genReqId(request) {
      const id = requestIdFor([request.headers['x-request-id']].flat()[0])
      ids.set(request, id)
      return id
    },
    frameworkErrors: (_badUrl, { raw }, reply) =>
      sendFastifyRefusal(reply, refusalOfBadUrl(raw), onRefusal, form),
    clientErrorHandler: (error, socket) => onClientError(error, socket, form),
    // While the listener drains, requests on open connections are served as usual.
    return503OnClosing: false,
    // The router limits the length of a path parameter. A path with a longer parameter would match no route. The limit
    // is set to the maximum size of a request head, so no parameter can exceed the limit.
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: maxHeaderSize,
      querystringParser: parseQuery,
    },
    // Without `requireHostHeader: false`, Node would refuse a request that has no `Host`. The response would then have
    // Node's body instead of the gateway's.
    http: { headersTimeout: 10_000, requireHostHeader: false },
    requestTimeout: 30_000,
  })
  trackResponses(app.server)
  installErrorHandlers(app, onRefusal, form)
  installExpectationHandler(app.server)
  // The drain listens for `upgrade`, so Node does not respond to upgrade requests itself. Without this handler, these
  // requests would get no response.
  routeUpgrades(app.server, () => false, form)
  // By default, Node keeps only the first thousand headers and silently drops the rest. A dropped header could be a
  // second credential, so there is no limit here.
  app.server.maxHeadersCount = 0
  // Request bodies are read by `readBody`, so Fastify must not read them. Every HTTP method is registered, so that the
  // gateway itself responds to all methods.
  for (const method of METHODS) {
    if (method !== 'GET' && method !== 'HEAD')
      app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  }
  const openPaths = new Set<string | undefined>(Object.values(probes).map(({ path }) => path))
  app.addHook('onRequest', async ({ raw, routeOptions }) => {
    if (openPaths.has(routeOptions.url)) rejectMalformed(raw)
    else rejectOutsiders(raw)
  })
  app.addHook('onSend', async (request, reply) => {
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
  })

  const { isUp, isReady, metrics } = probes
  app.get(isUp.path, { schema: { response: responseSchemas(isUp) } }, async () => ({ status: 'ok' }))
  app.get<{ Querystring: { for?: string } }>(
    isReady.path,
    { schema: { response: responseSchemas(isReady) } },
    async (request, reply) => {
      const report = await (request.query.for === 'public' ? health.publicReadiness() : health.readiness())
      return reply.code(report.status === 'down' ? 503 : 200).send(report)
    },
  )
  app.get(metrics.path, async (_request, reply) => reply.type(contentType).send(await renderMetrics()))
  refuseOtherMethods(app, [...Object.values(probes), ...Object.values(documentation)])
  app.register(async api => {
    admitOperators(api, sessions, { ...dependencies, reasonOf })
    serveApi(api, dependencies)
    serveDocumentation(api, dependencies.documentation)
  })
  app.register(async page => {
    logCalls(page, { ...dependencies, reasonOf })
    serveConsole(page, sessions, dependencies)
  })
  return app

  /**
   * Called for every request except probes.
   * @throws Refusal if the client's network is not allowed, or if a page of another site sent the request
   */
  function rejectOutsiders(request: IncomingMessage): void {
    if (!isAllowedAddress(request)) throw new Refusal('admin_forbidden', { reason: 'admin.allow_from' })
    rejectMalformed(request)
    const { origin, isForwarded } = seenByBrowser(request)
    if (isLoopbackListener(app) && !isForwarded) rejectDnsRebinding(request.headers)
    rejectCrossSite(request.headers, origin)
  }

  /** Runs the checks of the `onRequest` hook. The router calls no hook for a URL that cannot be decoded. */
  function refusalOfBadUrl(request: IncomingMessage): unknown {
    try {
      rejectOutsiders(request)
      return new Refusal('path_invalid')
    } catch (refusal) {
      return refusal
    }
  }
}

/** This header is sent with every response, even if the HTTP parser refuses the request. */
const noSniffing = ['x-content-type-options', 'nosniff']

function admitOperators(
  app: FastifyInstance,
  sessions: ConsoleSessions,
  dependencies: Dependencies & CallLog,
): void {
  app.addHook('onRequest', async (request: OperatorRequest) => {
    if (!dependencies.operators().hasAny) throw new Refusal('admin_disabled')
    rejectAmbiguousCredentials(request.raw)
    const caller = callerOf(request, sessions, dependencies)
    if (typeof caller === 'string')
      throw new Refusal('admin_unauthorized', {
        reason: caller,
        headers: { 'www-authenticate': 'Bearer' },
      })
    request.operator = caller.operator
    request.channel = caller.channel
  })
  logCalls(app, dependencies)
}

/**
 * Returns the operator of a request, or the reason why there is none. If the request has a bearer token, the console's
 * cookie is ignored.
 * @throws Refusal 403 `admin_unauthorized` if a page of another origin may have sent the request
 */
function callerOf(
  { raw }: FastifyRequest,
  sessions: ConsoleSessions,
  { operators, isConsoleOn, seenByBrowser }: Dependencies,
): { operator: Operator; channel: AuditChannel } | 'missing' | 'malformed' | 'unknown' | 'session_ended' {
  const { headers, method = '' } = raw
  const { authorization = '', cookie } = headers
  if (/^bearer /i.test(authorization)) {
    const operator = operators().find(authorization)
    return operator === undefined
      ? 'unknown'
      : { operator, channel: headers[channelHeader] === 'cli' ? 'cli' : 'api' }
  }
  const withoutSession = authorization === '' ? 'missing' : 'malformed'
  if (cookie === undefined || !isConsoleOn()) return withoutSession
  const { origin, isSecure } = seenByBrowser(raw)
  const session = findSession(sessions, cookie, isSecure)
  if (typeof session === 'string') return session === 'missing' ? withoutSession : session
  if (!safeMethods.has(method)) rejectForeignOrigin(headers, origin)
  return { operator: session.operator, channel: 'console' }
}

/** The methods that RFC 9110 §9.2.1 defines as safe. */
const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

interface CallLog {
  readonly logger: Logger
  /** Returns the reason why a request was refused with 401, 403 or 429. */
  reasonOf(request: FastifyRequest): string | undefined
}

function logCalls(app: FastifyInstance, { logger, reasonOf }: CallLog): void {
  const logged = new WeakSet<OperatorRequest>()
  const log = (request: OperatorRequest, client: string, status?: number) => {
    if (logged.has(request)) return
    logged.add(request)
    const { id, operator, method, routeOptions } = request
    const caller = operator === undefined ? { client } : { operator: operator.name }
    const reason = reasonOf(request)
    logger.info({ request_id: id, ...caller, method, path: routeOptions.url, status, reason }, 'admin')
  }
  app.addHook('onRequest', async (request: OperatorRequest, { raw }) => {
    const { ip } = request
    // Fastify calls no hook if the client disconnects before the response. The requested change may still have been
    // made, so the call must be logged.
    raw.once('close', () => log(request, ip))
  })
  app.addHook('onResponse', async (request, reply) => log(request, request.ip, reply.statusCode))
}

/**
 * Returns whether the listener is bound to a loopback address. Only then does `rejectDnsRebinding` check `Host`. It is
 * not enough that a connection comes from loopback. A proxy on this machine also connects from loopback, but may
 * forward the client's `Host`.
 */
function isLoopbackListener({ server }: FastifyInstance): boolean {
  const address = server.address() as AddressInfo | null
  return address !== null && isLoopback(address.address)
}

/**
 * Refuses a request with more than one `Host` header, or with an `Expect` other than `100-continue`.
 * @throws Refusal 400 `request_invalid`
 */
function rejectMalformed({
  headers: { expect },
  headersDistinct: { host = [] },
}: Pick<IncomingMessage, 'headers' | 'headersDistinct'>): void {
  const isMalformed = host.length > 1 || (expect !== undefined && expect.toLowerCase() !== '100-continue')
  if (isMalformed) throw new Refusal('request_invalid', { headers: { connection: 'close' } })
}

/**
 * Refuses a request with more than one `Authorization` header. Node would use the first one and ignore the others.
 * @throws Refusal 400 `credentials_ambiguous`
 */
function rejectAmbiguousCredentials({
  headersDistinct: { authorization = [] },
}: Pick<IncomingMessage, 'headersDistinct'>): void {
  if (authorization.length > 1) throw new Refusal('credentials_ambiguous')
}
