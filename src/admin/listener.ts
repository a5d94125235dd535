// The second listener (CONTRACT §7): health for probes, metrics for Prometheus, and the admin API for operators.
import { METHODS } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { installDoors, type OnRefusal, refuse, refuseConnection } from '../http/error-handlers.ts'
import { contentType } from '../observability/metrics/exposition.ts'
import { answerSchemas } from '../openapi/operation.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { FailureLog } from '../storage/failure-log.ts'
import type { OperatorRequest } from './api/endpoint.ts'
import { type AdminParts, createAdminEndpoints } from './api/endpoints.ts'
import { refuseOtherMethods, serveApi } from './api/serve-api.ts'
import { isLoopback, refuseOtherNames, refuseOtherSites } from './cross-site.ts'
import { type Documentation, documentation, serveDocumentation } from './documentation.ts'
import type { Health } from './health.ts'
import type { Operators } from './operators.ts'
import { probes } from './probes.ts'

interface Parts extends AdminParts {
  /** Those of the moment. */
  operators(): Operators
  health: Health
  /** The page for Prometheus: of this process, or of all workers. */
  expose(): Promise<string>
  /** Asked when somebody wants to read it. */
  documentation(): Documentation
  /** Keeps what a client named its request, where that is safe, or makes an id. */
  requestIdFor(given: string | undefined): string
  logger: Logger
  failureLog: FailureLog
}

export function createAdminListener(parts: Parts): FastifyInstance {
  const { health, expose, requestIdFor, failureLog } = parts
  const ids = new WeakMap<object, string>()
  const onRefusal: OnRefusal = (request, refusal) => {
    const id = ids.get(request) ?? requestIdFor(undefined)
    const fields = () => ({ request_id: id, path: request.url?.split('?')[0] })
    if (refusal.cause !== undefined) failureLog(refusal.code, refusal.cause, fields)
    return ['x-request-id', id]
  }
  const app = fastify({
    genReqId(request) {
      const id = requestIdFor([request.headers['x-request-id']].flat()[0])
      ids.set(request, id)
      return id
    },
    frameworkErrors: (error, _request, reply) => refuse(reply, error, onRefusal),
    clientErrorHandler: refuseConnection,
    routerOptions: { ignoreTrailingSlash: true },
    // Node would refuse a request without a host in words of its own.
    http: { headersTimeout: 10_000, requireHostHeader: false },
    requestTimeout: 30_000,
  })
  installDoors(app, onRefusal)
  // Bodies are read as the endpoints under /api/v1/auth read theirs, and every method has its answer.
  for (const method of METHODS) {
    if (method !== 'GET' && method !== 'HEAD')
      app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  }
  app.addHook('onSend', async (request, reply) => {
    reply.header('cache-control', 'no-store').header('x-request-id', request.id)
  })

  const { isUp, isReady, metrics } = probes
  app.get(isUp.path, { schema: { response: answerSchemas(isUp) } }, async () => ({ status: 'ok' }))
  app.get<{ Querystring: { for?: string } }>(
    isReady.path,
    { schema: { response: answerSchemas(isReady) } },
    async (request, reply) => {
      const report = await (request.query.for === 'public' ? health.ofPublicRoutes() : health.ofGuards())
      return reply.code(report.status === 'down' ? 503 : 200).send(report)
    },
  )
  app.get(metrics.path, async (_request, reply) => reply.type(contentType).send(await expose()))
  refuseOtherMethods(app, [...Object.values(probes), ...Object.values(documentation)])
  app.register(async api => serveOperators(api, parts))
  app.register(async docs => {
    admitOperators(docs, parts, 'Basic')
    serveDocumentation(docs, parts.documentation)
  })
  return app
}

function serveOperators(api: FastifyInstance, parts: Parts): void {
  admitOperators(api, parts, 'Bearer')
  serveApi(api, { ...parts, endpoints: createAdminEndpoints(parts) })
  api.all('/admin/v1/*', async () => {
    throw new Refusal('route_unknown')
  })
}

/** @param scheme `Basic` for what people open in a browser, which can send no other */
function admitOperators(
  app: FastifyInstance,
  { operators: inForce, logger }: Parts,
  scheme: 'Bearer' | 'Basic',
): void {
  const challenge = scheme === 'Basic' ? 'Basic realm="peage", charset="UTF-8"' : scheme
  app.addHook('onRequest', async (request: OperatorRequest) => {
    const operators = inForce()
    if (!operators.areAny) throw new Refusal('admin_disabled')
    const { headers } = request
    if (isLocal(request)) refuseOtherNames(headers)
    refuseOtherSites(headers)
    const operator = operators.find(headers.authorization, scheme)
    if (operator === undefined)
      throw new Refusal('admin_unauthorized', { headers: { 'www-authenticate': challenge } })
    request.operator = operator
  })
  app.addHook('onResponse', async (request: OperatorRequest, reply) => {
    const { id, operator, method, routeOptions } = request
    const who = operator === undefined ? { client: request.ip } : { operator }
    logger.info({ request_id: id, ...who, method, path: routeOptions.url, status: reply.statusCode }, 'admin')
  })
}

/** By what is listened on, not by where this request came in: a proxy beside the gateway may pass the client's Host on. */
function isLocal({ server }: FastifyRequest): boolean {
  const listening = server.server.address() as AddressInfo | null
  return listening !== null && isLoopback(listening.address)
}
