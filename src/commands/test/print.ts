// Shows what became of the cases: a line for each that failed, and what none of them reached.
import type { PlacedCase } from '../../config/test-cases.ts'
import type { CaseResult, CasesReport, Miss, Unreached } from '../../explain/run-cases.ts'

export function reportAsText({ results, unreached }: CasesReport): string {
  const failed = results.filter(({ misses }) => misses.length > 0)
  const lines = failed.map(
    ({ test, misses }) => `${placeOf(test)}  ${nameOf(test)}  ${misses.map(missAsText).join('; ')}`,
  )
  const summary = `${results.length - failed.length} passed, ${failed.length} failed`
  return `${[...lines, summary, coverage(unreached)].join('\n')}\n`
}

export function reportAsJson({ results, unreached }: CasesReport): string {
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

function placeOf({ file, line, column }: PlacedCase): string {
  return `${file}:${line}:${column}`
}

function nameOf({ request: { method, path }, host, as }: PlacedCase): string {
  const { plan, used_today = 0 } = typeof as === 'string' ? { plan: as } : as
  const used = used_today === 0 ? '' : ` (${used_today} used today)`
  return `${method} ${path}${host === undefined ? '' : ` at ${host}`} as ${plan}${used}`
}

function missAsText({ what, expected, came }: Miss): string {
  return `expected ${what} ${expected}, came ${came ?? nothing[what]}`
}

const nothing: Record<Miss['what'], string> = {
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
  return names.length === 0 ? 'every route and guard was reached' : `not reached: ${names.join(', ')}`
}
