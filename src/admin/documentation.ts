// Serves the OpenAPI document.
import type { FastifyInstance } from 'fastify'
import type { Operation } from '../openapi/operation.ts'
import { Type } from '../schema/type.ts'
import { admissionRefusals, type OperatorRequest } from './api/admin-endpoint.ts'
import { requireRole } from './api/roles.ts'

export const documentation = {
  document: {
    method: 'GET',
    path: '/openapi.json',
    id: 'showDocument',
    summary: 'Shows this document',
    caller: 'operator',
    roles: ['read', 'support'],
    responses: {
      200: {
        description: 'The document, in OpenAPI 3.1.',
        body: Type.Unsafe<object>({ type: 'object', description: 'An OpenAPI document.' }),
      },
    },
    refusals: admissionRefusals,
  },
} as const satisfies Record<string, Operation>

/**
 * @param app an instance that accepts requests only from operators
 * @param render called once, at the first request
 */
export function serveDocumentation(app: FastifyInstance, render: () => Promise<string>): void {
  let rendered: Promise<string> | undefined
  app.get(documentation.document.path, async ({ operator }: OperatorRequest, reply) => {
    requireRole(documentation.document, operator)
    rendered ??= render()
    return reply.type('application/json; charset=utf-8').send(await rendered)
  })
}
