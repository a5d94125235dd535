// Lets an operator retry a delivery immediately.
import { parseSubject } from '../../identity/tokens/tokens.ts'
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { messages } from '../../refusals/catalog.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { type AdminDependencies, type AdminEndpoint, bodilessRefusals } from './admin-endpoint.ts'

export const retryDelivery = {
  method: 'POST',
  path: '/admin/v1/deliveries/:id/retry',
  id: 'retryDelivery',
  summary: 'Retries a delivery immediately',
  description:
    'The gateway sends the delivery to the user’s current webhook. A pending delivery keeps its schedule afterwards. A failed delivery gets only this attempt. If an attempt is already running, nothing changes. The audit log records the call.',
  caller: 'operator',
  roles: ['support'],
  params: terms.record({ id: terms.id('The delivery ID.') }),
  responses: { 202: { description: 'The delivery is due now.', body: terms.message } },
  refusals: mergeRefusals(bodilessRefusals, { 404: ['delivery_unknown'], 409: ['delivery_over'] }),
} as const satisfies Operation

export function createDeliveryRetry({ deliveries, clock }: AdminDependencies): AdminEndpoint {
  return {
    operation: retryDelivery,
    async handle({ params, audited }) {
      const id = parseSubject(params.id)
      if (id === undefined) throw new Refusal('delivery_unknown')
      const outcome = await deliveries.retryNow(id, new Date(clock.now()), userId =>
        audited({ userId, changes: { delivery: id } }),
      )
      if (outcome === 'unknown') throw new Refusal('delivery_unknown')
      if (outcome === 'over') throw new Refusal('delivery_over')
      return { message: messages.deliveryDue }
    },
  }
}
