// Finds configured plans, the allowances of each plan, and the plans that a route lets through.
import type { Allowance } from './formats/units.ts'
import type { PlanConfig } from './sections/schema.ts'

export interface Plans {
  /** The configured plans, lowest first. */
  readonly all: readonly PlanConfig[]
  /** The names of the configured plans, lowest first. */
  readonly names: readonly string[]
  /** The plan of new accounts. */
  readonly first: PlanConfig
  /** The plans whose users may have API keys, lowest first. */
  readonly withApiKeys: readonly string[]
  /** The plans whose users may register a webhook, lowest first. */
  readonly withWebhook: readonly string[]
  /** @returns undefined if no plan of this name is configured */
  find(name: string): PlanConfig | undefined
  /**
   * Returns how much of the quota a plan may use.
   * @returns undefined if the plan is not configured, or has no allowance for the quota
   */
  allowance(plan: string, quota: string): Allowance | undefined
}

export function createPlans(all: readonly PlanConfig[]): Plans {
  const byName = new Map(all.map(plan => [plan.name, plan]))
  const namesOf = (plans: readonly PlanConfig[]) => plans.map(({ name }) => name)
  return {
    all,
    names: namesOf(all),
    // The schema requires at least one plan.
    first: all[0] as PlanConfig,
    withApiKeys: namesOf(all.filter(plan => plan.api_keys > 0)),
    withWebhook: namesOf(all.filter(plan => plan.webhook)),
    find: name => byName.get(name),
    allowance(plan, quota) {
      const quotas = byName.get(plan)?.quotas
      return quotas !== undefined && Object.hasOwn(quotas, quota) ? quotas[quota] : undefined
    },
  }
}

/** The keys of a route that decide which plans it lets through. */
interface PlanKeys {
  readonly plans?: readonly string[] | undefined
  readonly quota?: { readonly name: string } | undefined
}

/**
 * Returns the plans that a route lets through, in the order of the configuration. A route with a quota lets a plan
 * through only if the plan's allowance for this quota is above 0.
 * @returns undefined if the route lets every plan through, even a plan that is not configured
 */
export function allowedPlans(
  plans: Pick<Plans, 'names' | 'allowance'>,
  { plans: listed, quota }: PlanKeys,
): readonly string[] | undefined {
  if (quota === undefined) return listed
  return plans.names.filter(
    name =>
      (listed === undefined || listed.includes(name)) && (plans.allowance(name, quota.name)?.limit ?? 0) > 0,
  )
}
