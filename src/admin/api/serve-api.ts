// Serves the endpoints of the admin API to operators, and records their changes in the audit log.
import type { FastifyInstance, HTTPMethods } from 'fastify'
import { toRefusal } from '../../http/error-handlers.ts'
import { JsonObject } from '../../http/json-body.ts'
import { parseSubject } from '../../identity/tokens/tokens.ts'
import { responseSchemas, successStatus } from '../../openapi/operation.ts'
import { inLanguage } from '../../openapi/response-body.ts'
import { ClientDisconnected, Refusal } from '../../refusals/refusal.ts'
import type { AuditRecord } from '../audit-store.ts'
import type { AdminDependencies, AdminEndpoint, AdminRequest, OperatorRequest } from './admin-endpoint.ts'
import { createHashCounts } from './count-hashes.ts'
import { createAlertEndpoint } from './emit-alert.ts'
import { createExplainEndpoint } from './explain-request.ts'
import { readBody, refuseUnknownParameters } from './input.ts'
import { createAuditLog } from './list-audit.ts'
import { createDeliveryLog } from './list-deliveries.ts'
import { createMailLog } from './list-mails.ts'
import { createPlanListing } from './list-plans.ts'
import { createRouteListing } from './list-routes.ts'
import { createUserListing } from './list-users.ts'
import { createDeliveryRetry } from './retry-delivery.ts'
import { requireFields, requireRole } from './roles.ts'
import { createConfigurationEndpoint } from './show-configuration.ts'
import { createOverviewEndpoint } from './show-overview.ts'
import { createUserAdministration } from './users.ts'

export function createAdminEndpoints(dependencies: AdminDependencies): AdminEndpoint[] {
  return [
    createRouteListing,
    createPlanListing,
    createHashCounts,
    createUserListing,
    createUserAdministration,
    createAlertEndpoint,
    createDeliveryLog,
    createDeliveryRetry,
    createMailLog,
    createAuditLog,
    createConfigurationEndpoint,
    createExplainEndpoint,
    createOverviewEndpoint,
  ].flatMap(create => create(dependencies))
}

/** @param app an instance whose requests all come from operators with a valid token */
export function serveApi(app: FastifyInstance, dependencies: AdminDependencies): void {
  const { audit, clock, language } = dependencies
  const endpoints = createAdminEndpoints(dependencies)
  for (const { operation, handle, headers = {}, auditsRefusals = operation.method !== 'GET' } of endpoints) {
    const { method, path } = operation
    const status = successStatus(operation)
    app.route({
      method,
      url: path,
      schema: { response: responseSchemas(operation) },
      async handler(request: OperatorRequest, reply) {
        const params = request.params as AdminRequest['params']
        const auditRecord = (rest: AuditedPart): AuditRecord => ({
          at: new Date(clock.now()),
          operator: request.operator?.name ?? '',
          channel: request.channel ?? 'api',
          method,
          route: path,
          request_id: request.id,
          previous: null,
          ...rest,
        })
        // `params.id` is a user's id only in the paths of users. In other paths it is, for example, the id of a
        // delivery.
        let subjectId = path.startsWith(usersPath) ? parseSubject(params.id) : undefined
        try {
          const may = requireRole(operation, request.operator)
          const query = request.query as AdminRequest['query']
          refuseUnknownParameters(query, operation.query)
          const result = await handle({
            params,
            may,
            query,
            body: await readBodyOf(operation, request),
            written: ({ userId, changes }) =>
              audit.write(auditRecord({ user_id: userId ?? null, changes, status })),
            audited({ userId, changes, previous = null }) {
              subjectId = userId
              return audit.inTransaction(
                auditRecord({ user_id: subjectId ?? null, changes, previous, status }),
              )
            },
          })
          return reply
            .code(status)
            .headers(headers)
            .send(result && inLanguage(result, language()))
        } catch (thrown) {
          // The audit log does not record server errors. If the change was committed before the error, its audit record
          // was committed with it.
          const { code, status: refusedStatus } = toRefusal(thrown)
          const isFailure = refusedStatus >= 500 && code !== 'mail_not_configured'
          const isAudited = (auditsRefusals || code === 'admin_forbidden') && !isFailure
          if (isAudited && !(thrown instanceof ClientDisconnected)) {
            await audit.writeRefusal(
              auditRecord({ user_id: subjectId ?? null, changes: null, status: refusedStatus }),
            )
          }
          throw thrown
        }
      },
    })
  }
  app.all<{ Params: { '*': string } }>(`${apiPath}/*`, async ({ params }) => {
    const allowed = allowedMethods(endpoints, `${apiPath}/${params['*']}`)
    throw allowed.length === 0 ? new Refusal('route_unknown') : methodNotAllowed(allowed)
  })
}

type AuditedPart = Pick<AuditRecord, 'user_id' | 'changes' | 'status'> &
  Partial<Pick<AuditRecord, 'previous'>>

/**
 * Reads the body. If the operation has no body, any member in the request is refused. If the member were ignored, the
 * caller would believe that the change was applied.
 * @throws Refusal
 */
async function readBodyOf(
  operation: AdminEndpoint['operation'],
  request: OperatorRequest,
): Promise<JsonObject> {
  if (operation.method === 'GET') return new JsonObject({})
  return readBody(request, operation, names => requireFields(operation, request.operator, names))
}

/**
 * The prefix of the catch-all route, which refuses unknown paths and methods. A separate route for each missing method
 * would take 5 % of the startup time.
 */
const apiPath = '/admin/v1'

const usersPath = `${apiPath}/users/`

/**
 * For each path of the given operations, refuses the methods that no operation on this path has.
 * @param served the operations that are already registered, each with its method and path
 */
export function refuseOtherMethods(
  app: FastifyInstance,
  served: readonly { readonly method: string; readonly path: string }[],
): void {
  for (const path of new Set(served.map(operation => operation.path))) {
    const methods = served.filter(operation => operation.path === path).map(({ method }) => method)
    const allowed = withHead(methods)
    const others = app.supportedMethods.filter(method => !allowed.includes(method)) as HTTPMethods[]
    app.route({
      method: others,
      url: path,
      async handler() {
        throw methodNotAllowed(allowed)
      },
    })
  }
}

/** Returns the methods that the admin API accepts on a decoded path. Empty if the path is unknown. */
function allowedMethods(endpoints: readonly AdminEndpoint[], decoded: string): readonly string[] {
  const path = decoded.replace(/\/$/, '').split('/')
  const here = endpoints.filter(({ operation }) => {
    const pattern = operation.path.split('/')
    return (
      pattern.length === path.length &&
      pattern.every((part, i) => (part.startsWith(':') ? path[i] !== '' : part === path[i]))
    )
  })
  return withHead(here.map(({ operation }) => operation.method))
}

function withHead(methods: readonly string[]): readonly string[] {
  return methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
}

function methodNotAllowed(allowed: readonly string[]): Refusal {
  return new Refusal('method_not_allowed', { headers: { allow: allowed.join(', ') } })
}
