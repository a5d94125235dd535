// Serves the local endpoints through one handler of Fastify. The gateway itself runs the guards, reads the body and
// builds the response.
import type { IncomingMessage, RequestListener } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type {
  AcceptedCallers,
  AuthenticatedRequest,
  EndpointRequest,
  EndpointResponse,
  LocalEndpoint,
} from '../endpoints/local-endpoint.ts'
import { rateLimitKey } from '../http/client-address.ts'
import { JsonObject, readJsonObject } from '../http/json-body.ts'
import type { Operation } from '../openapi/operation.ts'
import { serializeResponse } from '../openapi/response-body.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { ServeEndpoint } from './handle-request.ts'
import type { RequestContext } from './request-context.ts'

const served = Symbol('served')

/** Fastify passes only the request to its handlers. So the result of the gate is attached to the request. */
type ServedRequest = IncomingMessage & {
  [served]?: { readonly context: RequestContext; readonly endpoint: LocalEndpoint }
}

function servedBy(request: ServedRequest) {
  const found = request[served]
  if (found === undefined) throw new Error('the request reached Fastify without a routing decision')
  return found
}

/** Returns the context of a request that `serveEndpoint` passed to Fastify. */
export function contextOf(request: IncomingMessage): RequestContext {
  return servedBy(request).context
}

/** @param serve Fastify's listener */
export function createServeEndpoint(serve: RequestListener): ServeEndpoint {
  return (context, endpoint) => {
    const request: ServedRequest = context.request
    request[served] = { context, endpoint }
    serve(request, context.response)
  }
}

/** The only path that is registered in Fastify, because the gate has already found the endpoint. */
export const servedPath = '/'

export function registerEndpoints(app: FastifyInstance): void {
  // The methods are registered as methods without a body. Otherwise, Fastify would refuse bodies with unknown media
  // types. The endpoints read bodies themselves.
  for (const method of ['POST', 'DELETE'])
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  // Fastify also registers HEAD for GET.
  app.route({
    method: ['GET', 'POST', 'DELETE'],
    url: servedPath,
    async handler({ raw }, reply) {
      const { context, endpoint } = servedBy(raw)
      const { operation } = endpoint
      const { status, headers, body, error, userId } = await answer(context, endpoint)
      if (operation.endsSessions) await context.snapshot.accessEnded()
      context.userId = userId
      context.decision = error ?? 'answered'
      reply
        .code(status)
        .header('cache-control', 'no-store')
        .headers(headers ?? {})
      if (body !== undefined) reply.header('content-type', 'application/json; charset=utf-8')
      const own = context.gatewayHeaders()
      for (let i = 0; i < own.length; i += 2) reply.header(own[i] as string, own[i + 1])
      return reply.send(body && serializeResponse(operation, status, body, context.snapshot.language))
    },
  })
}

async function answer(context: RequestContext, endpoint: LocalEndpoint): Promise<EndpointResponse> {
  if (endpoint.kind === 'document') {
    const headers = { 'cache-control': `public, max-age=${endpoint.maxAgeSeconds}` }
    return { status: 200, headers, body: endpoint.show() }
  }
  const sent = {
    client: rateLimitKey(context.head.client),
    parameter: parameterOf(context, endpoint.operation),
    userAgent: context.request.headers['user-agent'],
    query: queryOf(context),
    cookie: context.request.headers.cookie,
  }
  if (endpoint.kind === 'guarded') {
    const caller = await authenticated(context, endpoint.accepts)
    return endpoint.handle({ ...sent, ...caller, body: await bodyOf(context) })
  }
  const request = { ...sent, body: await bodyOf(context) }
  return endpoint.answer(request, async () => ({
    ...request,
    ...(await authenticated(context, { keys: 'none' })),
  }))
}

/** Returns the decoded path segment at the position of `:id`; an empty text if the path has no `:id`. */
function parameterOf({ head: { target } }: RequestContext, { path }: Operation): string {
  if (target instanceof Refusal || !path.includes('/:id')) return ''
  return target.segments[path.split('/').indexOf(':id') - 1] ?? ''
}

function queryOf({ head: { target } }: RequestContext): string {
  return target instanceof Refusal ? '' : target.query
}

async function authenticated(
  context: RequestContext,
  accepted: AcceptedCallers,
): Promise<Omit<AuthenticatedRequest, keyof EndpointRequest>> {
  const result = await context.snapshot.gate.endpointGuards(accepted)(context)
  if (!result.allowed) throw result.thrown
  const { user, sessionId, apiKey } = result.identity
  return { user, sessionId, apiKey }
}

/** Returns the body as a JSON object. If the body is anything else, returns `{}`. */
async function bodyOf({ request, response, head, snapshot }: RequestContext): Promise<JsonObject> {
  const { hasBody, contentLength, expectsContinue } = head
  const body = await readJsonObject(request, {
    timeoutMs: snapshot.bodyIdleMs,
    hasBody,
    contentLength,
    sendContinue: expectsContinue ? () => response.writeContinue() : undefined,
  })
  return body ?? new JsonObject({})
}
