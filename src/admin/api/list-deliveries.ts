// Lists the delivery log for operators.
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import type { Delivery, DeliveryStatus } from '../../webhooks/delivery/delivery-store.ts'
import { messageId } from '../../webhooks/delivery/delivery-worker.ts'
import { type AdminDependencies, type AdminEndpoint, operatorRefusals } from './admin-endpoint.ts'
import { readOneOf, readPage } from './input.ts'

const statuses = ['pending', 'delivered', 'failed', 'dropped'] as const satisfies DeliveryStatus[]

const status = terms.oneOf(statuses, 'How far it is.')

const delivery = terms.record(
  {
    id: terms.id('The delivery’s id.'),
    user_id: terms.id('Whose webhook it is for.'),
    type: terms.nullable(terms.text('The alert’s; `null` once that is deleted.')),
    status,
    attempts: terms.count('Made so far.'),
    response_status: terms.nullable(Type.Integer({ description: 'The receiver’s answer to the last one.' })),
    error: terms.nullable(terms.text('What went wrong with the last one, where there was no answer.')),
    created_at: terms.instant('When the alert was emitted.'),
    next_attempt_at: terms.nullable(terms.instant('While it is pending.')),
    finished_at: terms.nullable(terms.instant('When it ended.')),
    webhook_id: terms.text('`webhook-id`, as the receiver is sent it.'),
  },
  { title: 'Delivery', description: 'An alert on its way to one user.' },
)

export const listDeliveries = {
  method: 'GET',
  path: '/admin/v1/deliveries',
  id: 'listDeliveries',
  summary: 'Lists deliveries of alerts, the newest first',
  caller: 'operator',
  roles: ['read', 'support'],
  query: terms.record({
    user_id: Type.Optional(terms.id('Only this user’s.')),
    status: Type.Optional(status),
    cursor: terms.cursor,
  }),
  responses: {
    200: {
      description: 'At most 100 deliveries.',
      body: terms.record({ deliveries: Type.Array(delivery), next_cursor: terms.nextCursor }),
    },
  },
  refusals: mergeRefusals(operatorRefusals, { 400: ['request_invalid'] }),
} as const satisfies Operation

export function createDeliveryLog({ deliveries }: AdminDependencies): AdminEndpoint {
  return {
    operation: listDeliveries,
    async handle({ query }) {
      const status = readOneOf(statuses, query.status)
      const [page, next_cursor] = await readPage(query, range => deliveries.list({ ...range, status }))
      return { deliveries: page.map(toResponse), next_cursor }
    },
  }
}

/** Adds the `webhook-id` that the receiver gets, so that operators can compare its log with this one. */
function toResponse({ alert_id, ...rest }: Delivery): object {
  return { ...rest, webhook_id: messageId(alert_id, rest.user_id) }
}
