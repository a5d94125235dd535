// Holds a configuration to the cases that were written for it, and finds what none of them reached (CONTRACT §1).

import { type GuardName, guardsOf } from '../config/active-guards.ts'
import type { Config } from '../config/schema/schema.ts'
import type { PlacedCase } from '../config/test-cases.ts'
import type { Explain, Explanation } from './explain.ts'
import { questionOf } from './question.ts'

/** What was expected of a case and did not come. */
export interface Miss {
  readonly what: 'status' | 'route' | 'upstream' | 'error'
  readonly expected: string | number
  readonly came: string | number | null
}

export interface CaseResult {
  readonly test: PlacedCase
  readonly misses: readonly Miss[]
}

export interface Unreached {
  /** Routes that no case came to, by name. */
  readonly routes: readonly string[]
  /** Guards of the other routes that no case was decided by. */
  readonly guards: readonly { readonly route: string; readonly guard: GuardName }[]
}

export interface CasesReport {
  readonly results: readonly CaseResult[]
  readonly unreached: Unreached
}

export async function runCases(
  config: Config,
  explain: Explain,
  cases: readonly PlacedCase[],
): Promise<CasesReport> {
  const results: CaseResult[] = []
  const reached = new Map<string, Set<GuardName>>()
  for (const test of cases) {
    const explanation = await explain(questionOf(test))
    results.push({ test, misses: missesOf(test, explanation) })
    if (explanation.route === null) continue
    const decided = reached.get(explanation.route) ?? new Set()
    reached.set(explanation.route, decided)
    for (const { guard, outcome } of explanation.guards) if (outcome !== 'skip') decided.add(guard)
  }
  return { results, unreached: unreachedBy(reached, config) }
}

function missesOf({ expect }: PlacedCase, { refusal, route, upstream }: Explanation): Miss[] {
  const misses: Miss[] = []
  const hold = (what: Miss['what'], expected: Miss['expected'] | undefined, came: Miss['came']) => {
    if (expected !== undefined && expected !== came) misses.push({ what, expected, came })
  }
  hold('status', expect.status, refusal?.status ?? null)
  hold('error', expect.error, refusal?.code ?? null)
  hold('route', expect.route, route)
  const isUrl = expect.upstream?.includes('://')
  // Any target may be the one whose turn it is.
  const fits = isUrl ? upstream?.urls.includes(expect.upstream ?? '') : upstream?.name === expect.upstream
  if (!fits) hold('upstream', expect.upstream, (isUrl ? upstream?.url : upstream?.name) ?? null)
  return misses
}

function unreachedBy(reached: ReadonlyMap<string, ReadonlySet<GuardName>>, { routes }: Config): Unreached {
  return {
    routes: routes.map(({ name }) => name).filter(name => !reached.has(name)),
    guards: routes.flatMap(route => {
      const decided = reached.get(route.name)
      if (decided === undefined) return []
      return guardsOf(route)
        .filter(guard => !decided.has(guard))
        .map(guard => ({ route: route.name, guard }))
    }),
  }
}
