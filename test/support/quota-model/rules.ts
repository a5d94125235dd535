// The random configurations of the model test: the allowances of plans, and the costs of routes.
import { oneOf, type Random } from '../random.ts'

export const quotas = ['exports', 'reports'] as const
export type Quota = (typeof quotas)[number]
export type Period = 'day' | 'month'

/** The plans that a configuration may have, lowest first. Every configuration has the plan `free`. */
export const planNames = ['free', 'team', 'scale', 'gold'] as const

/** A plan that no configuration has. */
export const unknownPlan = 'ghost'

/** An even limit is per day, and an odd limit is per month. So the limit in a response also shows the period. */
export type Allowance = { readonly limit: number } | 'unlimited' | 'none'

export interface Rules {
  readonly number: number
  readonly plans: ReadonlyMap<string, Readonly<Record<Quota, Allowance>>>
  /** The quota and cost of each route; the path is `/use/INDEX`. */
  readonly routes: readonly { readonly quota: Quota; readonly cost: number }[]
}

/** How a request is counted under one configuration and one plan. */
export interface Option {
  readonly quota: Quota
  readonly cost: number
  readonly allowance: Allowance
}

const routeCount = 5
const maxCost = 5

export function periodOf(limit: number): Period {
  return limit % 2 === 0 ? 'day' : 'month'
}

export function randomRules(number: number, random: Random): Rules {
  const allowance = (): Allowance => {
    const kind = random(12)
    if (kind === 0) return 'none'
    if (kind === 1) return 'unlimited'
    // A limit below the cost of a route is invalid.
    return { limit: maxCost + random(40) }
  }
  // One configuration in four has no plan `scale`. Users with the plan `scale` then have an unknown plan.
  const names = random(4) === 0 ? planNames.filter(name => name !== 'scale') : planNames
  return {
    number,
    plans: new Map(names.map(name => [name, { exports: allowance(), reports: allowance() }])),
    routes: Array.from({ length: routeCount }, () => ({
      quota: oneOf(quotas, random),
      cost: 1 + random(maxCost),
    })),
  }
}

export function optionOf(rules: Rules, plan: string, route: number): Option {
  const { quota, cost } = rules.routes[route] ?? { quota: 'exports', cost: 1 }
  return { quota, cost, allowance: rules.plans.get(plan)?.[quota] ?? 'none' }
}

export function randomRoute(random: Random): number {
  return random(routeCount)
}

/** Returns the sections `plans`, `upstreams` and `routes`. @param service the URL of the upstream */
export function yamlOf({ number, plans, routes }: Rules, service: string): string {
  const text = (allowance: Allowance) =>
    allowance === 'none' ? '0' : allowance === 'unlimited' ? allowance : limited(allowance.limit)
  const limited = (limit: number) => `${limit}/${periodOf(limit)}`
  const planLines = [...plans].map(
    ([name, { exports, reports }]) =>
      `  - { name: ${name}, quotas: { exports: ${text(exports)}, reports: ${text(reports)} } }`,
  )
  const routeLines = routes.map(
    ({ quota, cost }, index) =>
      `  - { name: use-${index}, path: /use/${index}, upstream: service, quota: { name: ${quota}, cost: ${cost} } }`,
  )
  return `plans:
${planLines.join('\n')}
upstreams: { service: { targets: ['${service}'], connections_per_client: 1000 } }
routes:
${routeLines.join('\n')}
  - { name: who, path: /who, upstream: service }
  - { name: rules, path: /rules/${number}, upstream: service, auth: none }
`
}
