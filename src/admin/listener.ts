// The second listener (CONTRACT §7): health for probes, metrics for Prometheus, and the admin API for operators.
import { METHODS } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import {
  installErrorHandlers,
  type OnRefusal,
  onClientError,
  sendFastifyRefusal,
} from '../http/error-handlers.ts'
import { contentType } from '../observability/metrics/exposition.ts'
import { responseSchemas } from '../openapi/operation.ts'
import { schemaController } from '../openapi/response-body.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { FailureLog } from '../storage/failure-log.ts'
import type { IsAllowedAddress } from './allowed-addresses.ts'
import type { OperatorRequest } from './api/endpoint.ts'
import { type AdminDependencies, refuseOtherMethods, serveApi } from './api/serve-api.ts'
import { isLoopback, rejectCrossSite, rejectDnsRebinding } from './cross-site.ts'
import { type Documentation, documentation, serveDocumentation } from './documentation.ts'
import type { Health } from './health.ts'
import type { Operators } from './operators.ts'
import { probes } from './probes.openapi.ts'

interface Dependencies extends AdminDependencies {
  /** The operators of the current configuration. */
  operators(): Operators
  /** Of the current configuration. */
  isAllowedAddress: IsAllowedAddress
  health: Health
  /** The Prometheus page, of this process or of all workers. */
  renderMetrics(): Promise<string>
  /** Called at the first request for it. */
  documentation(): Promise<Documentation>
  /** Keeps the client's request id if it is safe, or generates one. */
  requestIdFor(given: string | undefined): string
  logger: Logger
  failureLog: FailureLog
}

export function createAdminListener(dependencies: Dependencies): FastifyInstance {
  const { health, renderMetrics, requestIdFor, failureLog, isAllowedAddress } = dependencies
  const ids = new WeakMap<object, string>()
  const onRefusal: OnRefusal = (request, refusal) => {
    const id = ids.get(request) ?? requestIdFor(undefined)
    const fields = () => ({ request_id: id, path: request.url?.split('?')[0] })
    if (refusal.cause !== undefined) failureLog(refusal.code, refusal.cause, fields)
    return ['x-request-id', id]
  }
  const app = fastify({
    schemaController,
    genReqId(request) {
      const id = requestIdFor([request.headers['x-request-id']].flat()[0])
      ids.set(request, id)
      return id
    },
    frameworkErrors: (error, { raw }, reply) =>
      sendFastifyRefusal(reply, isAllowedAddress(raw) ? error : new Refusal('admin_forbidden'), onRefusal),
    clientErrorHandler: onClientError,
    routerOptions: { ignoreTrailingSlash: true },
    // Node would refuse a request without a `Host` header with its own response body.
    http: { headersTimeout: 10_000, requireHostHeader: false },
    requestTimeout: 30_000,
  })
  installErrorHandlers(app, onRefusal)
  // Bodies are read as those under /api/v1/auth are, and every method gets a response of ours.
  for (const method of METHODS) {
    if (method !== 'GET' && method !== 'HEAD')
      app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  }
  const openPaths = new Set<string | undefined>(Object.values(probes).map(({ path }) => path))
  app.addHook('onRequest', async ({ raw, routeOptions }) => {
    if (!openPaths.has(routeOptions.url) && !isAllowedAddress(raw)) throw new Refusal('admin_forbidden')
  })
  app.addHook('onSend', async (request, reply) => {
    reply.header('cache-control', 'no-store').header('x-request-id', request.id)
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
  app.register(async api => serveOperators(api, dependencies))
  app.register(async docs => {
    admitOperators(docs, dependencies, 'Basic')
    serveDocumentation(docs, dependencies.documentation)
  })
  return app
}

function serveOperators(api: FastifyInstance, dependencies: Dependencies): void {
  admitOperators(api, dependencies, 'Bearer')
  serveApi(api, dependencies)
  api.all('/admin/v1/*', async () => {
    throw new Refusal('route_unknown')
  })
}

/** @param scheme `Basic` for pages that people open in a browser, which can send no other scheme */
function admitOperators(
  app: FastifyInstance,
  { operators: currentOperators, logger }: Dependencies,
  scheme: 'Bearer' | 'Basic',
): void {
  const challenge = scheme === 'Basic' ? 'Basic realm="peage", charset="UTF-8"' : scheme
  app.addHook('onRequest', async (request: OperatorRequest) => {
    const operators = currentOperators()
    if (!operators.hasAny) throw new Refusal('admin_disabled')
    const { headers } = request
    if (isLoopbackListener(request)) rejectDnsRebinding(headers)
    rejectCrossSite(headers)
    const operator = operators.find(headers.authorization, scheme)
    if (operator === undefined)
      throw new Refusal('admin_unauthorized', { headers: { 'www-authenticate': challenge } })
    request.operator = operator
  })
  app.addHook('onResponse', async (request: OperatorRequest, reply) => {
    const { id, operator, method, routeOptions } = request
    const caller = operator === undefined ? { client: request.ip } : { operator: operator.name }
    logger.info(
      { request_id: id, ...caller, method, path: routeOptions.url, status: reply.statusCode },
      'admin',
    )
  })
}

/** Decides by the listening address, not this connection's: a proxy on the host may forward the client's Host. */
function isLoopbackListener({ server }: FastifyRequest): boolean {
  const address = server.server.address() as AddressInfo | null
  return address !== null && isLoopback(address.address)
}
