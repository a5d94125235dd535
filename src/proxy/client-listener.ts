// The listener that clients reach: every request is read once by the gate, then answered here, guarded and passed, or refused.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { SecureContextOptions } from 'node:tls'
import fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { authOperations } from '../endpoints/auth.openapi.ts'
import { guardedEndpoint, jwksPath } from '../endpoints/endpoint-table.ts'
import { showKeys } from '../endpoints/jwks.ts'
import { upgradeOperations } from '../endpoints/upgrade.openapi.ts'
import { userOperations } from '../endpoints/user.openapi.ts'
import { limitedBy } from '../gate/parsing/client-address.ts'
import type { Arrival, Door } from '../gate/parsing/request-head.ts'
import { endHeld } from '../http/deferred-writes.ts'
import {
  installDoors,
  type OnRefusal,
  refuse,
  refuseConnection,
  routeExpectations,
  sayNo,
} from '../http/error-handlers.ts'
import { createListener } from '../http/http-server.ts'
import { JsonObject, readJsonObject } from '../http/json-body.ts'
import { linger } from '../http/lingering-close.ts'
import { endTurn, inTurn, isIdle } from '../http/pipelining.ts'
import { routeUpgrades } from '../http/upgrade.ts'
import { jwksMaxAge } from '../identity/keys/key-schedule.ts'
import type { ReceivedRequest, Tracing } from '../observability/tracing/tracing.ts'
import { answerSchemas, type Operation } from '../openapi/operation.ts'
import type { FailureLog } from '../storage/failure-log.ts'
import { beginCount, endCount } from './bytes-sent.ts'
import type { EndRequest } from './completion.ts'
import { createServeRoute } from './handle-request.ts'
import { answerFields, beginPassage, type Passage, passageOf, servedUnder } from './request-context.ts'
import type { RequestSnapshot } from './request-snapshot.ts'

interface Parts {
  /** Of the moment: each request is served to its end by the one under which it was read. */
  inForce(): RequestSnapshot
  /** Milliseconds, to begin with. */
  timeouts: { headers: number; body_idle: number; keep_alive: number }
  /** The certificate to serve with; undefined for plain HTTP. */
  tls: SecureContextOptions | undefined
  failureLog: FailureLog
  tracing: Tracing | undefined
  endRequest: EndRequest
}

/** Fastify serves our own endpoints; all else is decided before it. */
export function createFrontDoor(parts: Parts): FastifyInstance {
  const { inForce, failureLog, timeouts, tls, tracing } = parts
  const onRefusal: OnRefusal = (request, refusal) => {
    const passage = passageOf(request)
    passage.decision = refusal.code
    const { requestId } = passage.arrival
    const fields = () => ({ request_id: requestId })
    if (refusal.cause !== undefined) failureLog(refusal.code, refusal.cause, fields)
    return answerFields(passage)
  }
  const serveRoute = createServeRoute(onRefusal)
  const onClose = function (this: ServerResponse) {
    const passage = passageOf(this.req)
    if (servedUnder(passage).logRequest !== undefined) endCount(passage, this.req.socket)
    endTurn(this)
    const { decision, outcome } = passage
    // The exchange hears of the same event, and has still to say how it ended.
    if (decision === 'forwarded' && outcome === undefined) process.nextTick(end, this)
    else end(this)
  }
  function end(response: ServerResponse): void {
    parts.endRequest(response)
    servedUnder(passageOf(response.req)).end()
  }

  function open(request: IncomingMessage, response: ServerResponse, serveOwn: RequestListener): void {
    const passage = passageOf(request)
    const { door } = passage.arrival
    if (door.kind === 'route') serveRoute(servedUnder(passage).toUpstream, passage, door, response)
    else if (door.kind === 'own') serveOwn(request, response)
    else if (door.kind === 'preflight') answerPreflight(passage, response)
    else sayNo(response, door.refusal, onRefusal)
  }

  const app = fastify({
    serverFactory: serveOwn =>
      createListener({ timeouts, tls, isIdle }, (request, response) => {
        const startedAt = performance.now()
        // Not read before its turn: one that waits behind others may never have one, and nobody would hear of it.
        inTurn(request, response, () => {
          const under = inForce()
          under.begin()
          const arrival = under.gate.arrivals.read(request)
          const trace = tracing?.begin(request, receivedRequest(arrival))
          const passage = beginPassage(request, arrival, under, startedAt, trace)
          if (under.logRequest !== undefined) beginCount(passage, request.socket)
          response.on('close', onClose)
          if (trace === undefined) open(request, response, serveOwn)
          else trace.run(() => open(request, response, serveOwn))
        })
      }),
    genReqId: request => passageOf(request).arrival.requestId,
    // What Fastify's router sees is what the gate decided, never what the client wrote.
    rewriteUrl: request => ownPath(passageOf(request)),
    frameworkErrors: (error, _request, reply) => refuse(reply, error, onRefusal),
    clientErrorHandler: refuseConnection,
    // While draining, what arrives on an open connection is answered as ever.
    return503OnClosing: false,
  })
  installDoors(app, onRefusal)
  routeExpectations(app.server)
  routeUpgrades(app.server, request => inForce().gate.arrivals.read(request).wantsWebSocket)
  // Without a body to Fastify, which would refuse odd media types: the endpoints read it themselves.
  for (const method of ['POST', 'DELETE'])
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  app.addHook('onSend', async (request, reply) => {
    const fields = answerFields(passageOf(request.raw))
    for (let i = 0; i < fields.length; i += 2) reply.header(fields[i] as string, fields[i + 1])
  })
  serveOwnPaths(app)
  return app
}

/** As its span tells it. */
function receivedRequest({ requestId, client, host, door }: Arrival): ReceivedRequest {
  const route = door.kind === 'route' ? door.route.name : undefined
  return { requestId, client, host, template: templateOf(door), route }
}

function templateOf(door: Door): string | undefined {
  if (door.kind === 'own') return door.path
  return door.kind === 'preflight' ? undefined : door.route?.path
}

function ownPath({ arrival: { door } }: Passage): string {
  if (door.kind !== 'own') throw new Error(`a ${door.kind} request at our own endpoints`)
  return door.path
}

function answerPreflight(passage: Passage, response: ServerResponse): void {
  passage.decision = 'answered'
  linger(response.req, response, true)
  // No 100 was sent: whether a body follows is the client's to choose.
  const last = passage.arrival.expectsContinue ? ['connection', 'close'] : []
  response.writeHead(204, [...answerFields(passage), ...last, 'cache-control', 'no-store'])
  endHeld(response, '')
}

/** What is no JSON object counts as `{}` (spec §4). */
async function bodyOf(request: IncomingMessage, response: ServerResponse): Promise<JsonObject> {
  const passage = passageOf(request)
  const { hasBody, contentLength, expectsContinue } = passage.arrival
  const body = await readJsonObject(request, {
    time: servedUnder(passage).bodyIdle,
    hasBody,
    contentLength,
    sendContinue: expectsContinue ? () => response.writeContinue() : undefined,
  })
  return body ?? new JsonObject({})
}

function serveOwnPaths(app: FastifyInstance): void {
  for (const [name, { path, ...operation }] of Object.entries(authOperations)) {
    app.post(path, { schema: { response: answerSchemas(operation) } }, async ({ raw }, reply) => {
      const passage = passageOf(raw)
      const endpoint = servedUnder(passage).own.auth[name as keyof typeof authOperations]
      const body = await bodyOf(raw, reply.raw)
      const answer = await endpoint({ body, client: limitedBy(passage.arrival.client) })
      passage.userId = answer.userId
      answered(raw, reply).code(answer.status).header('cache-control', 'no-store')
      return answer.body
    })
  }
  for (const operation of Object.values<Operation>({ ...userOperations, ...upgradeOperations })) {
    app.route({
      method: operation.method,
      url: operation.path,
      schema: { response: answerSchemas(operation) },
      async handler({ raw }, reply) {
        const passage = passageOf(raw)
        const { gate, own } = servedUnder(passage)
        const { plans, answer } = guardedEndpoint(own, operation)
        const identity = await gate.ownGuards(passage.arrival, plans, passage.trace)
        passage.identity = identity
        const { status, headers, body } = await answer({
          user: identity.user,
          body: await bodyOf(raw, reply.raw),
        })
        answered(raw, reply).code(status).header('cache-control', 'no-store')
        return reply.headers(headers ?? {}).send(body)
      },
    })
  }
  app.get(jwksPath, { schema: { response: answerSchemas(showKeys) } }, async ({ raw }, reply) => {
    answered(raw, reply).header('cache-control', `public, max-age=${jwksMaxAge}`)
    return servedUnder(passageOf(raw)).jwks()
  })
}

function answered(request: IncomingMessage, reply: FastifyReply): FastifyReply {
  passageOf(request).decision = 'answered'
  return reply
}
