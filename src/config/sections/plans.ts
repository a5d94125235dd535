// The schema of the `plans` section: the plans of the users, and what each plan may use.
import { Type } from '../../schema/type.ts'
import { formattedOrZero, ownName, PLAN_PATTERN, rate, section } from './builders.ts'

const plan = section(
  {
    name: ownName('Name of the plan.'),
    quotas: Type.Record(
      PLAN_PATTERN,
      formattedOrZero('allowance', {
        description: 'Uses per UTC day or month, for example 1000/month. unlimited: not counted. 0: no uses.',
      }),
      {
        title: 'a mapping of names of quotas to allowances',
        description: 'Allowances of the plan, by the name of the quota.',
        default: {},
        additionalProperties: false,
      },
    ),
    rate_limit: Type.Optional(rate('Requests of one user on all routes together. Omitted or 0: no limit.')),
    api_keys: Type.Integer({
      description: 'Maximum number of API keys of one user. 0: the plan has no API keys.',
      minimum: 0,
      maximum: 100,
      default: 0,
    }),
    webhook: Type.Boolean({ description: 'Allow users to register a webhook.', default: false }),
  },
  { description: 'One plan.' },
)

/** The plans if the file has no `plans` section. */
const builtInPlans = [{ name: 'free' }, { name: 'premium' }, { name: 'pro', api_keys: 5, webhook: true }]

export const plans = Type.Array(plan, {
  title: 'a list of 1 to 100 plans',
  description: 'Plans of the users, from the lowest to the highest. New accounts get the first plan.',
  minItems: 1,
  maxItems: 100,
  default: builtInPlans,
})
