// The log of deliveries, for operators (CONTRACT §7).
import type { FastifyInstance } from 'fastify'
import { Refusal } from '../refusals/refusal.ts'
import { messageId } from '../webhooks/delivering.ts'
import type { Delivery, DeliveryStatus, DeliveryStore } from '../webhooks/delivery-store.ts'
import { type Parameter, readId, single } from './queries.ts'

interface Listing {
  Querystring: { user_id?: Parameter; status?: Parameter; cursor?: Parameter }
}

export function serveDeliveries(app: FastifyInstance, deliveries: Pick<DeliveryStore, 'list'>): void {
  app.get<Listing>('/deliveries', async request => {
    const { user_id, status, cursor } = request.query
    const found = await deliveries.list({
      userId: readId(user_id),
      status: readStatus(single(status)),
      before: readId(cursor),
      limit: pageSize + 1,
    })
    const page = found.slice(0, pageSize)
    const last = found.length > pageSize ? page.at(-1) : undefined
    return { deliveries: page.map(shown), next_cursor: last === undefined ? null : String(last.id) }
  })
}

/** Deliveries on a page. */
const pageSize = 100

/** With the id that the receiver is told, by which its log and this one can be brought together. */
function shown({ alert_id, ...delivery }: Delivery): object {
  return { ...delivery, webhook_id: messageId(alert_id, delivery.user_id) }
}

const statuses: ReadonlySet<string> = new Set<DeliveryStatus>(['pending', 'delivered', 'failed', 'dropped'])

function readStatus(text: string | undefined): DeliveryStatus | undefined {
  if (text !== undefined && !statuses.has(text)) throw new Refusal('request_invalid')
  return text as DeliveryStatus | undefined
}
