// Requests and responses of the upgrade path (CONTRACT §5).

import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { upgradePath } from '../refusals/catalog.ts'
import { Type } from '../schema/type.ts'
import { guardRefusals } from './local-endpoint.ts'

const { record } = terms

export const upgradeOperations = {
  show: {
    method: 'GET',
    path: upgradePath,
    id: 'showUpgrade',
    summary: 'Says which plan the user is on, and where the next one is paid for',
    description: 'A route that is declared at this path answers instead.',
    caller: 'user',
    responses: {
      200: {
        description: 'The plans, and the way up.',
        body: record({
          current_plan: terms.plan,
          plans: Type.Array(terms.plan, { description: 'In rising order.' }),
          checkout_url: terms.nullable(
            terms.text('`null` on the highest plan, or where none is configured.'),
          ),
        }),
      },
    },
    refusals: guardRefusals,
  },
  go: {
    method: 'POST',
    path: upgradePath,
    id: 'upgrade',
    summary: 'Sends the user to where a higher plan is paid for',
    description: 'A route that is declared at this path answers instead.',
    caller: 'user',
    body: record(
      { plan: Type.Optional(terms.oneOf(['premium', 'pro'], 'Left out: the next one up.')) },
      { additionalProperties: true },
    ),
    responses: {
      303: { description: 'To there.', headers: { location: 'Where the plan is paid for.' } },
    },
    refusals: mergeRefusals(guardRefusals, { 400: ['plan_invalid'], 501: ['payment_not_configured'] }),
  },
} as const satisfies Record<string, Operation>
