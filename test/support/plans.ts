// Plans for tests, for example the built-in plans, which apply if the configuration has no section `plans`.
import { createPlans, type Plans } from '../../src/config/plans.ts'

const nothing = { quotas: {}, api_keys: 0, webhook: false }

export const builtInPlans = createPlans([
  { ...nothing, name: 'free' },
  { ...nothing, name: 'premium' },
  { ...nothing, name: 'pro', api_keys: 5, webhook: true },
])

/** @param webhooks maps the name of each plan to whether the plan has webhooks; the lowest plan comes first */
export function plansNamed(webhooks: Readonly<Record<string, boolean>>): Plans {
  return createPlans(Object.entries(webhooks).map(([name, webhook]) => ({ ...nothing, name, webhook })))
}
