// Local endpoints on the client listener: Fastify routes and serializes; guards, body and response are the gateway's.
import type { IncomingMessage, RequestListener } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { accountOperations } from '../endpoints/account.openapi.ts'
import { authOperations } from '../endpoints/auth.openapi.ts'
import { emailOperations } from '../endpoints/email.openapi.ts'
import type {
  AuthenticatedRequest,
  Endpoint,
  EndpointRequest,
  EndpointResponse,
} from '../endpoints/endpoint.ts'
import { jwksPath } from '../endpoints/endpoint-table.ts'
import { showKeys } from '../endpoints/jwks.openapi.ts'
import { passwordOperations } from '../endpoints/password.openapi.ts'
import { resetOperations } from '../endpoints/reset.openapi.ts'
import { sessionOperations } from '../endpoints/sessions.openapi.ts'
import { upgradeOperations } from '../endpoints/upgrade.openapi.ts'
import { userOperations } from '../endpoints/user.openapi.ts'
import { rateLimitKey } from '../http/client-address.ts'
import { JsonObject, readJsonObject } from '../http/json-body.ts'
import { jwksMaxAgeSeconds } from '../identity/keys/key-schedule.ts'
import { type Operation, responseSchemas } from '../openapi/operation.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Plan } from '../users/user.ts'
import type { ServeEndpoint } from './handle-request.ts'
import type { RequestContext } from './request-context.ts'

/** Fastify passes its handlers the request only. Holds requests of local endpoints alone. */
const contexts = new WeakMap<IncomingMessage, RequestContext>()

/** The context of a request that `serveEndpoint` passed to Fastify. */
export function contextOf(request: IncomingMessage): RequestContext {
  const context = contexts.get(request)
  if (context === undefined) throw new Error('a request that did not come through the gate')
  return context
}

/** @param serve Fastify's listener */
export function createServeEndpoint(serve: RequestListener): ServeEndpoint {
  return context => {
    contexts.set(context.request, context)
    serve(context.request, context.response)
  }
}

/** Fastify routes by the path that the gate decided on, never by the one that the client sent. */
export function localPathOf(request: IncomingMessage): string {
  const { routing } = contextOf(request)
  if (routing.kind !== 'local') throw new Error(`a ${routing.kind} request at our own endpoints`)
  return routing.path
}

const operations: readonly Operation[] = [
  ...Object.values(authOperations),
  ...Object.values(sessionOperations),
  ...Object.values(accountOperations),
  ...Object.values(passwordOperations),
  ...Object.values(resetOperations),
  ...Object.values(emailOperations),
  ...Object.values(userOperations),
  ...Object.values(upgradeOperations),
]

export function registerEndpoints(app: FastifyInstance): void {
  // Declared as bodiless, because Fastify would refuse unknown media types: the endpoints read bodies themselves.
  for (const method of ['POST', 'DELETE'])
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  app.addHook('onSend', async ({ raw }, reply) => {
    const headers = contextOf(raw).gatewayHeaders()
    for (let i = 0; i < headers.length; i += 2) reply.header(headers[i] as string, headers[i + 1])
  })
  for (const operation of operations) {
    app.route({
      method: operation.method,
      url: operation.path,
      schema: { response: responseSchemas(operation) },
      async handler({ raw }, reply) {
        const context = contextOf(raw)
        const { endpoints, accessEnded } = context.snapshot
        const { status, headers, body, userId } = await answer(context, endpoints.get(operation))
        if (operation.endsSessions) await accessEnded()
        context.userId = userId
        return answered(context, reply, 'no-store')
          .code(status)
          .headers(headers ?? {})
          .send(body)
      },
    })
  }
  app.get(jwksPath, { schema: { response: responseSchemas(showKeys) } }, async ({ raw }, reply) => {
    const context = contextOf(raw)
    answered(context, reply, `public, max-age=${jwksMaxAgeSeconds}`)
    return context.snapshot.jwks()
  })
}

async function answer(context: RequestContext, endpoint: Endpoint): Promise<EndpointResponse> {
  const sent = {
    client: rateLimitKey(context.head.client),
    parameter: parameterOf(context, endpoint.operation),
    userAgent: context.request.headers['user-agent'],
  }
  if (endpoint.kind === 'guarded') {
    const caller = await authenticated(context, endpoint.plans)
    return endpoint.handle({ ...sent, ...caller, body: await bodyOf(context) })
  }
  const request = { ...sent, body: await bodyOf(context) }
  return endpoint.answer(request, async () => ({ ...request, ...(await authenticated(context, undefined)) }))
}

/** The last segment, decoded as for matching: `:id` stands nowhere else. */
function parameterOf({ head: { target } }: RequestContext, { path }: Operation): string {
  return path.endsWith('/:id') && !(target instanceof Refusal) ? (target.segments.at(-1) ?? '') : ''
}

async function authenticated(
  context: RequestContext,
  plans: readonly Plan[] | undefined,
): Promise<Omit<AuthenticatedRequest, keyof EndpointRequest>> {
  const result = await context.snapshot.gate.endpointGuards(plans)(context)
  if (!result.allowed) throw result.thrown
  const { user, credential, sessionId, apiTokenId } = result.identity
  return { user, credential, sessionId, apiTokenId }
}

/** A body that is not a JSON object counts as `{}` (spec §4). */
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

function answered(context: RequestContext, reply: FastifyReply, cacheControl: string): FastifyReply {
  context.decision = 'answered'
  return reply.header('cache-control', cacheControl)
}
