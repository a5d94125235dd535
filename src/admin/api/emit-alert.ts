// Queues alerts from downstream services for users' webhooks.
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { Type } from '../../schema/type.ts'
import { type AdminDependencies, type AdminEndpoint, operatorRefusals } from './admin-endpoint.ts'
import { invalidField, readCount } from './input.ts'

/** The maximum length of an alert type in characters. Every receiver should be able to store a text of this length. */
const maxTypeLength = 255

export const emitAlert = {
  method: 'POST',
  path: '/admin/v1/alerts',
  id: 'emitAlert',
  summary:
    'Sends an alert to the webhook of one user, or to the webhooks of all active users whose plan has webhooks',
  description:
    'The gateway stores the deliveries before it responds, and sends them afterwards. The audit log records the call without `data`.',
  caller: 'operator',
  roles: [],
  body: terms.record({
    type: terms.text('The type of the alert, for example `course.done`. Control characters are refused.', {
      minLength: 1,
      maxLength: maxTypeLength,
    }),
    data: Type.Optional(
      Type.Unsafe<unknown>({ description: 'The data of the alert, any JSON value. Default: `{}`.' }),
    ),
    user_id: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'The user who receives the alert. By default, every active user whose plan has webhooks receives it.',
      }),
    ),
  }),
  responses: {
    202: {
      description: 'The deliveries are queued.',
      body: terms.record({
        deliveries: terms.count(
          'The number of queued deliveries. It is 0 if the user has no webhook, is inactive, or has a plan without webhooks.',
        ),
      }),
    },
  },
  refusals: mergeRefusals(operatorRefusals, {
    400: ['request_invalid'],
    404: ['user_not_found'],
    413: ['body_too_large'],
  }),
} as const satisfies Operation

export function createAlertEndpoint({ alerts }: AdminDependencies): AdminEndpoint {
  return {
    operation: emitAlert,
    async handle({ body, audited }) {
      const type = readType(body.string('type'))
      // An absent `user_id` means all users. `null` is a client error and must not send an alert to all users.
      const userId = readCount('user_id', body.value('user_id'))
      const data = body.value('data')
      // The audit omits the alert's data, which is private to the service and its users.
      const queued = await alerts.emit({ type, data, userId }, audited({ userId, changes: { type } }))
      if (queued === 'user_unknown') throw new Refusal('user_not_found', { status: 404 })
      return { deliveries: queued }
    },
  }
}

function readType(type: string): string {
  if (type === '' || type.length > maxTypeLength || /[\p{Cc}]/u.test(type) || !type.isWellFormed()) {
    throw invalidField('type')
  }
  return type
}
