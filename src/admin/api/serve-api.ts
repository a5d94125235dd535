// Serves the endpoints of the admin API to operators, and writes what they change into the audit.
import type { FastifyInstance, HTTPMethods } from 'fastify'
import type { Clock } from '../../clock.ts'
import { toRefusal } from '../../http/answer.ts'
import { JsonObject } from '../../http/json-body.ts'
import { parseSubject } from '../../identity/tokens/tokens.ts'
import { answerSchemas } from '../../openapi/operation.ts'
import { ClientGone } from '../../refusals/client-gone.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { AuditStore, Deed } from '../audit-store.ts'
import { readBody } from './bodies.ts'
import type { AdminCall, AdminEndpoint, OperatorRequest } from './endpoint.ts'

interface Parts {
  endpoints: readonly AdminEndpoint[]
  audit: Pick<AuditStore, 'write' | 'alongside'>
  clock: Clock
}

/** @param app where every request is an operator's */
export function serveApi(app: FastifyInstance, { endpoints, audit, clock }: Parts): void {
  for (const { operation, answer } of endpoints) {
    const { method, path, answers, body } = operation
    const [status = 200] = Object.keys(answers).map(Number)
    app.route({
      method,
      url: path,
      schema: { response: answerSchemas(operation) },
      async handler(request: OperatorRequest, reply) {
        const params = request.params as AdminCall['params']
        const deed = (rest: Pick<Deed, 'user_id' | 'changes' | 'status'>): Deed => ({
          at: new Date(clock.now()),
          operator: request.operator ?? '',
          method,
          route: path,
          request_id: request.id,
          ...rest,
        })
        let about = parseSubject(params.id)
        try {
          const given = await answer({
            params,
            query: request.query as AdminCall['query'],
            body: body === undefined ? new JsonObject({}) : await readBody(request, body),
            audited({ userId, changes }) {
              about = userId
              return audit.alongside(deed({ user_id: about ?? null, changes, status }))
            },
          })
          return reply.code(status).send(given)
        } catch (thrown) {
          // What a store or a fault kept from being answered left its record with what it changed, or changed nothing.
          const refused = toRefusal(thrown).status
          if (method !== 'GET' && refused < 500 && !(thrown instanceof ClientGone)) {
            await audit.write(deed({ user_id: about ?? null, changes: null, status: refused }))
          }
          throw thrown
        }
      },
    })
  }
  refuseOtherMethods(
    app,
    endpoints.map(({ operation }) => operation),
  )
}

/** @param served what is at each path already */
export function refuseOtherMethods(
  app: FastifyInstance,
  served: readonly { readonly method: string; readonly path: string }[],
): void {
  for (const path of new Set(served.map(operation => operation.path))) {
    const methods = served.filter(operation => operation.path === path).map(({ method }) => method)
    const allowed = methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    const others = app.supportedMethods.filter(method => !allowed.includes(method)) as HTTPMethods[]
    app.route({
      method: others,
      url: path,
      async handler() {
        throw new Refusal('method_not_allowed', { headers: { allow: allowed.join(', ') } })
      },
    })
  }
}
