// Makes one more attempt of a delivery immediately.
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
  summary: 'Tries a delivery once more, now',
  description:
    'To the webhook that its user has now. One that waits goes on by its schedule afterwards, one that had failed is given this one attempt, and one that is being tried stays as it is. Stands in the audit.',
  caller: 'operator',
  roles: ['support'],
  params: terms.record({ id: terms.id('The delivery’s id.') }),
  responses: { 202: { description: 'It is due now.', body: terms.message } },
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
