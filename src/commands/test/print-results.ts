// Formats a test report: one line per failed case, and the routes and guards that no case reached.
import type { LocatedCase } from '../../config/test-cases.ts'
import type { CaseResult, Miss, TestReport, Unreached } from '../../explain/run-cases.ts'
import { keyAsText } from '../explain/print-explanation.ts'

export function reportAsText({ results, unreached }: TestReport): string {
  const failed = results.filter(({ misses }) => misses.length > 0)
  const lines = failed.map(
    ({ test, misses }) => `${locationOf(test)}  ${caseTitle(test)}  ${misses.map(mismatchAsText).join('; ')}`,
  )
  const summary = `${results.length - failed.length} passed, ${failed.length} failed`
  return `${[...lines, summary, coverage(unreached)].join('\n')}\n`
}

export function reportAsJson({ results, unreached }: TestReport): string {
  const isGood = ({ misses }: CaseResult) => misses.length === 0
  const passed = results.filter(isGood).length
  const document = {
    passed,
    failed: results.length - passed,
    cases: results.map(result => {
      const { test, misses } = result
      const { request, host, as, file, line, column } = test
      return {
        file,
        line,
        column,
        request: { ...request, ...(host === undefined ? {} : { host }), as },
        ok: isGood(result),
        misses,
      }
    }),
    unreached,
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function locationOf({ file, line, column }: LocatedCase): string {
  return `${file}:${line}:${column}`
}

function caseTitle({ request: { method, path }, host, as }: LocatedCase): string {
  const given: Exclude<LocatedCase['as'], string> = typeof as === 'string' ? { plan: as } : as
  const { plan, used_today = 0, used = 0, verified = true, key, scopes } = given
  const more = [
    used_today === 0 ? [] : `${used_today} used today`,
    used === 0 ? [] : `${used} used of the quota`,
    verified ? [] : 'email not verified',
    key || scopes ? keyAsText(scopes ?? null) : [],
  ].flat()
  const caller = more.length === 0 ? plan : `${plan} (${more.join(', ')})`
  return `${method} ${path}${host === undefined ? '' : ` at ${host}`} as ${caller}`
}

function mismatchAsText({ what, expected, came }: Miss): string {
  return `expected ${what} ${expected}, got ${came ?? noneCame[what]}`
}

const noneCame: Record<Miss['what'], string> = {
  status: 'none (not refused)',
  route: 'none',
  upstream: 'none (not forwarded)',
  error: 'none (not refused)',
}

function coverage({ routes, guards }: Unreached): string {
  const names = [
    ...routes.map(name => `route ${name}`),
    ...guards.map(({ route, guard }) => `${guard} of ${route}`),
  ]
  return names.length === 0
    ? 'the test cases reached every route and guard'
    : `not reached: ${names.join(', ')}`
}
