// The plans of a configuration without the section `plans`.
import { createPlans, type Plans } from '../../src/config/plans.ts'

const nothing = { quotas: {}, api_keys: 0, webhook: false }

export const builtInPlans = createPlans([
  { ...nothing, name: 'free' },
  { ...nothing, name: 'premium' },
  { ...nothing, name: 'pro', api_keys: 5, webhook: true },
])

/** @param webhooks for each name of a plan, lowest first, whether the plan has webhooks */
export function plansNamed(webhooks: Readonly<Record<string, boolean>>): Plans {
  return createPlans(Object.entries(webhooks).map(([name, webhook]) => ({ ...nothing, name, webhook })))
}
