// Creates the refusal for a user whose plan is not sufficient.
import { upgradePath } from './catalog.ts'
import { Refusal } from './refusal.ts'

/** @param required the plans that would be sufficient */
export function planRefusal(required: readonly string[], current: string): Refusal {
  const body = { required, current_plan: current, upgrade_url: upgradePath }
  return new Refusal('plan_insufficient', { body })
}
