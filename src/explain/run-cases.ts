// Runs a configuration's test cases, and finds the routes and guards that no case reached.
import { activeGuards, type GuardName } from '../config/active-guards.ts'
import { createPlans } from '../config/plans.ts'
import type { Config } from '../config/sections/schema.ts'
import type { LocatedCase } from '../config/test-cases.ts'
import { type Explain, type Explanation, toExplainRequest } from './explain.ts'

/** An expectation that a case did not meet. */
export interface Miss {
  readonly what: 'status' | 'route' | 'upstream' | 'error'
  readonly expected: string | number
  readonly came: string | number | null
}

export interface CaseResult {
  readonly test: LocatedCase
  readonly misses: readonly Miss[]
}

export interface Unreached {
  /** Names of routes that no case reached. */
  readonly routes: readonly string[]
  /** Guards that made no decision in any case, although a case reached their route. */
  readonly guards: readonly { readonly route: string; readonly guard: GuardName }[]
}

export interface TestReport {
  readonly results: readonly CaseResult[]
  readonly unreached: Unreached
}

export async function runCases(
  config: Config,
  explain: Explain,
  cases: readonly LocatedCase[],
): Promise<TestReport> {
  const results: CaseResult[] = []
  const covered = new Map<string, Set<GuardName>>()
  for (const test of cases) {
    const explanation = await explain(toExplainRequest(test))
    results.push({ test, misses: missesOf(test, explanation) })
    if (explanation.route === null) continue
    const coveredGuards = covered.get(explanation.route) ?? new Set()
    covered.set(explanation.route, coveredGuards)
    for (const { guard, outcome } of explanation.guards) if (outcome !== 'skip') coveredGuards.add(guard)
  }
  return { results, unreached: uncovered(covered, config) }
}

function missesOf({ expect }: LocatedCase, { refusal, status, route, upstream }: Explanation): Miss[] {
  const misses: Miss[] = []
  const compare = (what: Miss['what'], expected: Miss['expected'] | undefined, came: Miss['came']) => {
    if (expected !== undefined && expected !== came) misses.push({ what, expected, came })
  }
  compare('status', expect.status, status)
  compare('error', expect.error, refusal?.code ?? null)
  compare('route', expect.route, route)
  const isUrl = expect.upstream?.includes('://')
  // If the case expects a URL, the URL may belong to any target, because the load balancer may pick any target.
  const fits = isUrl ? upstream?.urls.includes(expect.upstream ?? '') : upstream?.name === expect.upstream
  if (!fits) compare('upstream', expect.upstream, (isUrl ? upstream?.url : upstream?.name) ?? null)
  return misses
}

function uncovered(
  reached: ReadonlyMap<string, ReadonlySet<GuardName>>,
  { routes, plans: configured }: Config,
): Unreached {
  const plans = createPlans(configured)
  return {
    routes: routes.map(({ name }) => name).filter(name => !reached.has(name)),
    guards: routes.flatMap(route => {
      const decided = reached.get(route.name)
      if (decided === undefined) return []
      return activeGuards(route, plans)
        .filter(guard => !decided.has(guard))
        .map(guard => ({ route: route.name, guard }))
    }),
  }
}
