// Lists the delivery log for operators.
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import type { Delivery, DeliveryStatus } from '../../webhooks/delivery/delivery-store.ts'
import { messageId } from '../../webhooks/delivery/delivery-worker.ts'
import { type AdminDependencies, type AdminEndpoint, operatorRefusals } from './admin-endpoint.ts'
import { readOneOf, readPage } from './input.ts'

const statuses = ['pending', 'delivered', 'failed', 'dropped'] as const satisfies DeliveryStatus[]

const status = terms.oneOf(statuses, 'The status of the delivery.')

const delivery = terms.record(
  {
    id: terms.id('The delivery ID.'),
    user_id: terms.id('The user who owns the webhook.'),
    type: terms.nullable(terms.text('The type of the alert. `null` if the alert is deleted.')),
    status,
    attempts: terms.count('The number of attempts so far.'),
    response_status: terms.nullable(
      Type.Integer({ description: 'The status code of the response to the last attempt.' }),
    ),
    error: terms.nullable(terms.text('The error of the last attempt, if there was no response.')),
    created_at: terms.instant('The time at which the gateway received the alert.'),
    next_attempt_at: terms.nullable(
      terms.instant('The due time of the next attempt. `null` if the delivery has ended.'),
    ),
    finished_at: terms.nullable(
      terms.instant('The time at which the delivery ended. `null` if the delivery is pending.'),
    ),
    webhook_id: terms.text('The `webhook-id` that the receiver gets.'),
  },
  { title: 'Delivery', description: 'The delivery of an alert to the webhook of one user.' },
)

export const listDeliveries = {
  method: 'GET',
  path: '/admin/v1/deliveries',
  id: 'listDeliveries',
  summary: 'Lists deliveries of alerts, newest first',
  caller: 'operator',
  roles: ['read', 'support'],
  query: terms.record({
    user_id: Type.Optional(terms.id('Only deliveries to this user.')),
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

/** Adds the `webhook-id` that the receiver gets, so that operators can find the delivery in the receiver's log. */
function toResponse({ alert_id, ...rest }: Delivery): object {
  return { ...rest, webhook_id: messageId(alert_id, rest.user_id) }
}
