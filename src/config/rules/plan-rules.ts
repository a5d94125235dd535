// Checks the plans and quotas, and the routes and test cases that use them.
import { type Diagnostic, joinPath, mostProblems } from '../diagnostics.ts'
import { nearest } from '../did-you-mean.ts'
import { isMapping } from '../sections/shape.ts'
import type { Validation } from '../validate.ts'
import { diagnosticAt, diagnosticAtKey, type YamlSource } from '../yaml/yaml-source.ts'
import { type DeclaredRoute, declaredRoutes } from './declarations.ts'
import { type DeclaredPlans, declaredPlans } from './declared-plans.ts'
import { unknownNameMessages } from './unknown-name.ts'

const mostQuotas = 50
const reservedQuota = 'free_daily'
const reserved = 'is reserved for the daily uses of limits.free_daily; choose another name'

/**
 * Checks the names of the plans and quotas. If the file has `limits.free_daily`, also checks that the plan `free`
 * exists.
 */
export function checkPlans(yaml: YamlSource, validation: Validation, plans: DeclaredPlans): Diagnostic[] {
  const diagnostics: Diagnostic[] = []
  const holders = new Map<string, string>()
  const quotas = new Set<string>()
  for (const [index, { name, pointer, quotas: stated }] of plans.all.entries()) {
    const holder = name === undefined ? undefined : holders.get(name)
    const problem =
      holder !== undefined
        ? `is also the name of ${holder}; choose another name`
        : name === 'anonymous'
          ? 'is reserved for callers without a credential; choose another name'
          : undefined
    if (problem !== undefined) diagnostics.push(diagnosticAt(yaml, `${pointer}/name`, problem))
    else if (name !== undefined) holders.set(name, `plans[${index}]`)
    for (const quota of stated.keys()) {
      const quotaPointer = `${pointer}/quotas/${quota}`
      if (quota === reservedQuota) {
        diagnostics.push(diagnosticAtKey(yaml, quotaPointer, reserved))
      } else if (!quotas.has(quota) && quotas.add(quota).size === mostQuotas + 1) {
        const message = `is one name too many; all plans together may have at most ${mostQuotas} names of quotas`
        diagnostics.push(diagnosticAtKey(yaml, quotaPointer, message))
      }
    }
  }
  const pointer = '/limits/free_daily'
  if (!plans.isKnown('free') && yaml.locations.has(pointer) && validation.isValid(pointer))
    diagnostics.push(diagnosticAt(yaml, pointer, withoutFree))
  return diagnostics
}

const withoutFree = 'applies only to users of plan free; declare a plan named free, or remove this key'

/** Checks the plans and the quota of each route. */
export function checkPlansOfRoutes(
  yaml: YamlSource,
  routes: readonly DeclaredRoute[],
  plans: DeclaredPlans,
): Diagnostic[] {
  const unknownPlan = unknownNameMessages('plan', plans.names)
  // Only the first `mostProblems` problems are shown, so the check of allowances stops at this number. A file may have
  // thousands of routes and 100 plans.
  const allowances: Diagnostic[] = []
  const diagnostics = routes.flatMap(route => {
    if (allowances.length < mostProblems) allowances.push(...checkAllowances(yaml, route, plans))
    const named = route.keys.plans ?? []
    return [
      ...named.flatMap((name, index) =>
        plans.isKnown(name) ? [] : [route.diagnosticWithin(['plans', index], unknownPlan(name))],
      ),
      ...(route.keys.free_daily && !plans.isKnown('free')
        ? [route.diagnostic('free_daily', withoutFree)]
        : []),
      ...(route.quota === undefined ? [] : checkOtherGuards(route)),
    ]
  })
  return [...diagnostics, ...allowances]
}

function checkOtherGuards({ keys: { auth, free_daily }, diagnostic }: DeclaredRoute): Diagnostic[] {
  const diagnostics: Diagnostic[] = []
  if (free_daily)
    diagnostics.push(diagnostic('quota', 'cannot be combined with free_daily; keep one of them'))
  if (auth === 'none' || auth === 'optional') {
    const message = `cannot be combined with auth: ${auth}, because anonymous requests cannot be counted; set auth to required, or remove this key`
    diagnostics.push(diagnostic('quota', message))
  }
  return diagnostics
}

/**
 * Checks each plan that the route lets through. The plan must have an allowance for the quota of the route. The
 * allowance must be 0, or at least the cost of one request.
 */
function checkAllowances(
  yaml: YamlSource,
  { quota, plans: letThrough, pointer, diagnostic }: DeclaredRoute,
  plans: DeclaredPlans,
): Diagnostic[] {
  if (quota === undefined) return []
  const { name, cost } = quota
  if (name === reservedQuota) return [diagnostic('quota', reserved)]
  return (letThrough ?? []).flatMap(plan => {
    if (!plans.isStated(plan, name)) return [diagnostic('quota', withoutAllowance(plan, name, plans))]
    const { limit, text } = plans.allowance(plan, name) ?? { limit: 0 }
    if (limit === 0 || cost <= limit) return []
    const message = `is above the allowance of plan ${plan} (${text}), so this plan could never use the route; lower the cost or raise the allowance`
    return [diagnosticAt(yaml, `${pointer}/quota/cost`, message)]
  })
}

function withoutAllowance(plan: string, quota: string, plans: DeclaredPlans): string {
  const near = nearest(quota, plans.all.find(({ name }) => name === plan)?.quotas.keys() ?? [])
  const instead = near === undefined ? '' : `did you mean ${near}? Otherwise `
  return `plan ${plan} states no allowance for this quota; ${instead}add a line to its quotas, for example ${quota}: 100/month`
}

/** Checks that the plans in the `as` keys of the test cases are configured. */
export function checkCallers(
  yaml: YamlSource,
  validation: Validation,
  { names, isKnown }: Pick<DeclaredPlans, 'names' | 'isKnown'>,
): Diagnostic[] {
  const { tests } = yaml.value as { tests?: unknown }
  const unknownPlan = unknownNameMessages('plan', names)
  return (Array.isArray(tests) ? tests : []).flatMap((test: unknown, index) => {
    const as = isMapping(test) ? test.as : undefined
    const [plan, key] = isMapping(as) ? [as.plan, 'as/plan'] : [as, 'as']
    const pointer = `/tests/${index}/${key}`
    if (typeof plan !== 'string' || !validation.isValid(pointer) || isKnown(plan)) return []
    if (key === 'as' && plan === 'anonymous') return []
    const isAnonymous = key === 'as' && nearest(plan, ['anonymous']) !== undefined
    const message = isAnonymous ? 'unknown plan; did you mean anonymous?' : unknownPlan(plan)
    return [diagnosticAt(yaml, pointer, message)]
  })
}

/** Warns of quotas and plans that are valid but probably a mistake. */
export function warnOfPlans(yaml: YamlSource, validation: Validation): Diagnostic[] {
  const plans = declaredPlans(yaml, validation)
  return [...warnOfQuotas(yaml, validation, plans), ...warnOfPro(yaml, plans)]
}

/**
 * Warns of quotas that no request can use. If a route has an invalid guard, there is no warning, because the author may
 * have meant the quota for this route.
 */
function warnOfQuotas(yaml: YamlSource, validation: Validation, plans: DeclaredPlans): Diagnostic[] {
  const pointers = new Map<string, string>()
  for (const { pointer, quotas } of plans.all) {
    for (const quota of quotas.keys())
      if (quota !== reservedQuota && !pointers.has(quota)) pointers.set(quota, `${pointer}/quotas/${quota}`)
  }
  const { routes: written } = yaml.value as { routes?: unknown }
  if (pointers.size === 0 || !Array.isArray(written)) return []
  const routes = declaredRoutes(yaml, validation, plans)
  if (routes.length < written.length || routes.some(({ guardsKnown }) => !guardsKnown)) return []
  return [...pointers].flatMap(([quota, pointer]) => {
    const using = routes.filter(route => route.quota?.name === quota)
    if (using.length === 0) return [diagnosticAtKey(yaml, pointer, 'no route uses this quota')]
    const letThrough = using.flatMap(route => route.plans ?? [])
    if (letThrough.some(plan => plans.allowance(plan, quota)?.limit !== 0)) return []
    const message =
      'is 0 for every plan that the routes with this quota let through, so every request to these routes gets a 403 response'
    return [diagnosticAtKey(yaml, pointer, message)]
  })
}

/**
 * The built-in plan `pro` has API keys and a webhook. If the file declares `pro` without these keys, the users of this
 * plan lose both.
 */
function warnOfPro(yaml: YamlSource, plans: DeclaredPlans): Diagnostic[] {
  return plans.all
    .filter(({ name, pointer }) => name === 'pro' && yaml.locations.has(pointer))
    .flatMap(({ pointer }) =>
      [
        { key: 'api_keys', lost: 'make API keys', builtIn: '5', none: '0' },
        { key: 'webhook', lost: 'register a webhook', builtIn: 'true', none: 'false' },
      ]
        .filter(({ key }) => !yaml.locations.has(`${pointer}/${key}`))
        .map(({ key, lost, builtIn, none }) => {
          const { offset, path } = diagnosticAt(yaml, pointer, '')
          const message = `is not set, so users of plan pro cannot ${lost}; write ${key}: ${builtIn} as in the built-in plan, or ${key}: ${none}`
          return { offset, path: joinPath(path, key), message }
        }),
    )
}
