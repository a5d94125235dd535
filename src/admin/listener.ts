// The second listener (CONTRACT §7): health for probes, and accounts for operators.
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { SessionStore } from '../accounts/session-store.ts'
import type { UserStore } from '../accounts/user-store.ts'
import type { Clock } from '../clock.ts'
import { installDoors, type OnRefusal, refuse, refuseConnection } from '../refusals/doors.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Alerts } from '../webhooks/alerts.ts'
import type { DeliveryStore } from '../webhooks/delivery-store.ts'
import { serveAlerts } from './alerts.ts'
import { serveDeliveries } from './deliveries.ts'
import type { Health } from './health.ts'
import { createOperators } from './operators.ts'
import { serveUsers } from './users.ts'

interface Parts {
  /** `admin.token` and `admin.tokens`, by name. */
  tokens: ReadonlyMap<string, string>
  users: UserStore
  sessions: Pick<SessionStore, 'list' | 'revokeAll'>
  alerts: Alerts
  deliveries: Pick<DeliveryStore, 'list'>
  health: Health
  inForce(): Promise<void>
  clock: Clock
  logger: Logger
}

export function createAdminListener({
  tokens,
  users,
  sessions,
  alerts,
  deliveries,
  health,
  inForce,
  clock,
  logger,
}: Parts): FastifyInstance {
  const onRefusal: OnRefusal = (request, refusal) => {
    if (refusal.cause !== undefined)
      logger.warn({ err: refusal.cause, path: request.url?.split('?')[0] }, refusal.code)
    return {}
  }
  const app = fastify({
    frameworkErrors: (error, _request, reply) => refuse(reply, error, onRefusal),
    clientErrorHandler: refuseConnection,
    routerOptions: { ignoreTrailingSlash: true },
    http: { headersTimeout: 10_000 },
    requestTimeout: 30_000,
  })
  installDoors(app, onRefusal)
  // Bodies are read as the endpoints under /api/v1/auth read theirs.
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  app.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get<{ Querystring: { for?: string } }>('/readyz', async (request, reply) => {
    const report = request.query.for === 'public' ? health.ofPublicRoutes() : await health.ofGuards()
    return reply.code(report.status === 'down' ? 503 : 200).send(report)
  })
  app.register(
    async api => {
      const operators = createOperators(tokens)
      api.addHook('onRequest', async request => {
        if (tokens.size === 0) throw new Refusal('admin_disabled')
        const operator = operators.find(request.headers.authorization)
        if (operator === undefined) {
          throw new Refusal('admin_unauthorized', { headers: { 'www-authenticate': 'Bearer' } })
        }
        logger.info({ operator, method: request.method, path: request.routeOptions.url }, 'admin')
      })
      serveUsers(api, { users, sessions, clock, inForce })
      serveAlerts(api, alerts)
      serveDeliveries(api, deliveries)
      api.all('/*', async () => {
        throw new Refusal('route_unknown')
      })
    },
    { prefix: '/admin/v1' },
  )
  return app
}
