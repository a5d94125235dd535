// Alerts that downstream services emit to users' webhooks (CONTRACT §7).
import type { FastifyInstance } from 'fastify'
import { Refusal } from '../refusals/refusal.ts'
import type { Alerts } from '../webhooks/alerts.ts'
import { readBody } from './bodies.ts'

export function serveAlerts(app: FastifyInstance, alerts: Alerts): void {
  app.post('/alerts', async (request, reply) => {
    const body = await readBody(request)
    const queued = await alerts.emit({
      type: readType(body.string('type')),
      data: body.value('data') ?? {},
      userId: readUserId(body.value('user_id')),
    })
    if (queued === 'user_unknown') throw new Refusal('user_not_found', { status: 404 })
    return reply.code(202).send({ deliveries: queued })
  })
}

/** Characters that receivers can be expected to keep. */
const longestType = 255

function readType(type: string): string {
  if (type === '' || type.length > longestType || /[\p{Cc}]/u.test(type) || !type.isWellFormed()) {
    throw new Refusal('request_invalid')
  }
  return type
}

/** Absent is everybody. `null` and the like are a caller's mistake, which must not become an alert to everybody. */
function readUserId(value: unknown): number | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw new Refusal('request_invalid')
  return value
}
