// The listener that clients reach: every request is read once by the gate, then answered here, guarded and passed, or refused.
import { METHODS } from 'node:http'
import type { SecureContextOptions } from 'node:tls'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { LogRequest } from './access-log.ts'
import type { Endpoint } from './endpoints/auth.ts'
import { authPrefix, jwksPath } from './endpoints/own-paths.ts'
import { limitedBy } from './gate/client-address.ts'
import type { Guards } from './gate/guards.ts'
import type { Pass } from './gate/pass.ts'
import { listenerOptions } from './listening.ts'
import type { Passage, Passages } from './passage.ts'
import {
  installDoors,
  type OnRefusal,
  refuse,
  refuseConnection,
  routeExpectations,
} from './refusals/doors.ts'
import { linger } from './refusals/linger.ts'
import { readJsonObject } from './wire/json-body.ts'
import { routeUpgrades } from './wire/upgrades.ts'

interface Parts {
  passages: Passages
  endpoints: Readonly<Record<string, Endpoint>>
  jwks(): object
  guards: Guards
  pass: Pass
  /** Milliseconds. */
  timeouts: { headers: number; body_idle: number; keep_alive: number }
  /** The certificate to serve with; undefined for plain HTTP. */
  tls: SecureContextOptions | undefined
  logger: Logger
  logRequest: LogRequest
}

// What Fastify's router sees is what the gate decided, never what the client wrote.
const doors = { route: '/routed', preflight: '/preflight', refused: '/refused' }

export function createFrontDoor(parts: Parts): FastifyInstance {
  const { passages, logger } = parts
  const onRefusal: OnRefusal = (request, refusal) => {
    passages.of(request.raw).decision = refusal.code
    if (refusal.cause !== undefined) logger.warn({ request_id: request.id, err: refusal.cause }, refusal.code)
  }
  const app = fastify({
    genReqId: request => passages.of(request).arrival.requestId,
    rewriteUrl(request) {
      const { door } = passages.begin(request).arrival
      return door.kind === 'own' ? door.path : doors[door.kind]
    },
    frameworkErrors: (error, request, reply) => refuse(request, reply, error, onRefusal),
    clientErrorHandler: refuseConnection,
    // While draining, what arrives on an open connection is answered as ever.
    return503OnClosing: false,
    ...listenerOptions({ headersTimeout: parts.timeouts.headers, tls: parts.tls }),
    keepAliveTimeout: parts.timeouts.keep_alive,
    connectionTimeout: 0,
    requestTimeout: 0,
  })
  // Node would drop what stands behind the thousandth field unseen: the body's length, or a second credential.
  app.server.maxHeadersCount = 0
  installDoors(app, onRefusal)
  routeExpectations(app.server)
  routeUpgrades(app.server, request => passages.begin(request).arrival.wantsWebSocket)
  // Without a body to Fastify, which would refuse odd media types: the gate reads bodies itself, or streams them.
  for (const method of METHODS) app.addHttpMethod(method, { hasBody: false, overrideExisting: true })

  app.addHook('onRequest', (request, reply, done) => {
    const passage = passages.of(request.raw)
    // A tick later: the exchange hears of the same event, and says how it ended.
    reply.raw.once('close', () => process.nextTick(parts.logRequest, passage, reply.raw))
    // A pipelined request waits for its turn: until then nobody would hear that its client has left.
    if (reply.raw.socket !== null) done()
    else reply.raw.once('socket', () => done())
  })
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id)
    const { fields } = passages.of(request.raw)
    if (fields !== undefined) reply.headers(fields)
  })
  serveOwn(app, parts)
  serveRoutes(app, parts)
  return app
}

function serveOwn(app: FastifyInstance, { endpoints, passages, jwks, timeouts }: Parts): void {
  for (const [name, endpoint] of Object.entries(endpoints)) {
    app.post(`${authPrefix}/${name}`, async (request, reply) => {
      const passage = passages.of(request.raw)
      const { arrival } = passage
      const body = await readJsonObject(request.raw, {
        time: timeouts.body_idle,
        hasBody: arrival.hasBody,
        contentLength: arrival.contentLength,
        sendContinue: arrival.expectsContinue ? () => reply.raw.writeContinue() : undefined,
      })
      const answer = await endpoint({ body, client: limitedBy(arrival.client) })
      answered(passage, reply).code(answer.status).header('cache-control', 'no-store')
      return answer.body
    })
  }
  app.get(jwksPath, async (request, reply) => {
    answered(passages.of(request.raw), reply).header('cache-control', 'public, max-age=300')
    return jwks()
  })
}

function serveRoutes(app: FastifyInstance, { passages, guards, pass }: Parts): void {
  const routed = async (request: FastifyRequest, reply: FastifyReply) => {
    const passage = passages.of(request.raw)
    const { arrival } = passage
    const { door } = arrival
    if (door.kind !== 'route') throw new Error(`a ${door.kind} request at the routes`)
    const identity = await guards(arrival, door.route, {
      onIdentity: known => {
        passage.identity = known
      },
      onRate: fields => {
        passage.fields = { ...passage.fields, ...fields }
      },
      isGone: () => reply.raw.destroyed,
    })
    passage.decision = 'forwarded'
    await pass({
      request: request.raw,
      response: reply.raw,
      arrival,
      route: door.route,
      target: door.target,
      identity,
      answer: passage.fields,
      onAnswer: () => reply.hijack(),
      onEnd: outcome => {
        passage.outcome = outcome
      },
    })
  }
  const preflight = async (request: FastifyRequest, reply: FastifyReply) => {
    const passage = passages.of(request.raw)
    // No 100 was sent: whether a body follows is the client's to choose.
    if (passage.arrival.expectsContinue) reply.header('connection', 'close')
    linger(request.raw, reply.raw)
    return answered(passage, reply).code(204).header('cache-control', 'no-store').send()
  }
  const refused = async (request: FastifyRequest) => {
    const { door } = passages.of(request.raw).arrival
    throw door.kind === 'refused' ? door.refusal : new Error(`a ${door.kind} request among the refused`)
  }
  app.route({ method: METHODS, url: doors.route, handler: routed })
  app.route({ method: 'OPTIONS', url: doors.preflight, handler: preflight })
  app.route({ method: METHODS, url: doors.refused, handler: refused })
}

function answered(passage: Passage, reply: FastifyReply): FastifyReply {
  passage.decision = 'answered'
  return reply
}
