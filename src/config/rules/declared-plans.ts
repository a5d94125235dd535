// Returns the plans of a file for the rules. If a plan has invalid keys, its valid keys are still returned.
import { appendToPointer } from '../diagnostics.ts'
import { type Allowance, parseAllowance } from '../formats/units.ts'
import type { Plans } from '../plans.ts'
import { isOwnName } from '../sections/builders.ts'
import { isMapping } from '../sections/shape.ts'
import type { Validation } from '../validate.ts'
import type { YamlSource } from '../yaml/yaml-source.ts'

export interface DeclaredPlan {
  readonly pointer: string
  /** Undefined if the name is missing or invalid. */
  readonly name: string | undefined
  /** The allowances of the plan by the name of the quota. The value is undefined if the allowance is invalid. */
  readonly quotas: ReadonlyMap<string, Allowance | undefined>
  /**
   * Whether the author may have meant further quotas, because the name of a quota or the whole key `quotas` is invalid.
   */
  readonly hasUnknownQuotas: boolean
}

export interface DeclaredPlans extends Pick<Plans, 'names' | 'allowance'> {
  readonly all: readonly DeclaredPlan[]
  /** Whether the file declares a plan with this name. Also true if the file has a plan whose name cannot be read. */
  isKnown(name: string): boolean
  /**
   * Whether the plan has an allowance for this quota. Also true if the plan is unknown or its `hasUnknownQuotas` is
   * true.
   */
  isStated(plan: string, quota: string): boolean
}

export function declaredPlans(yaml: YamlSource, validation: Validation): DeclaredPlans {
  const { plans } = yaml.value as { plans?: unknown }
  const listed: readonly unknown[] = Array.isArray(plans) ? plans : []
  const all = listed.map((plan, index) =>
    declaredPlan(isMapping(plan) ? plan : {}, appendToPointer('/plans', index), validation),
  )
  const byName = new Map<string, DeclaredPlan>()
  for (const plan of all) if (plan.name !== undefined && !byName.has(plan.name)) byName.set(plan.name, plan)
  const written = new Set(listed.map(plan => (isMapping(plan) ? plan.name : undefined)))
  const hasUnreadableName = !Array.isArray(plans) || [...written].some(name => typeof name !== 'string')
  return {
    all,
    names: [...byName.keys()],
    allowance: (plan, quota) => byName.get(plan)?.quotas.get(quota),
    isKnown: name => hasUnreadableName || written.has(name),
    isStated(plan, quota) {
      const declared = byName.get(plan)
      return declared === undefined || declared.hasUnknownQuotas || declared.quotas.has(quota)
    },
  }
}

function declaredPlan(
  { name, quotas }: Readonly<Record<string, unknown>>,
  pointer: string,
  validation: Validation,
): DeclaredPlan {
  const isValid = (...steps: string[]) => validation.isValid(steps.reduce<string>(appendToPointer, pointer))
  const stated = isMapping(quotas) ? Object.entries(quotas) : []
  const known = stated.filter(([quota]) => isOwnName(quota))
  return {
    pointer,
    name: typeof name === 'string' && isValid('name') ? name : undefined,
    quotas: new Map(
      known.map(([quota, text]) => [
        quota,
        isValid('quotas', quota) ? parseAllowance(String(text)) : undefined,
      ]),
    ),
    hasUnknownQuotas: !isMapping(quotas) || known.length < stated.length,
  }
}
