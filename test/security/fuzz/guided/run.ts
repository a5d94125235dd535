// Runs one target and prints the result to standard output.
import { openCoverage } from './coverage.ts'
import { distill, explore, type Finding } from './explore.ts'
import { readKept, writeKept } from './kept.ts'
import { targets } from './targets.ts'

interface Plan {
  readonly seed: number
  /** The time limit in milliseconds. */
  readonly within: number
  readonly cases: number
  /** Whether the run adds new inputs to the kept inputs in the repository. */
  readonly keeps: boolean
}

/** Runs a target. @returns true if no input broke a promise of the target */
export async function runTarget(name: string, { seed, within, cases, keeps }: Plan): Promise<boolean> {
  const target = await (targets[name] as (typeof targets)[string])()
  const coverage = openCoverage(target.covers)
  const startedAt = performance.now()
  try {
    const kept = readKept(name)
    const { finding, ...report } = await explore({ target, coverage, seed, kept, within, cases })
    const seconds = (performance.now() - startedAt) / 1_000
    console.log(
      `${name}: ${report.cases} cases in ${seconds.toFixed(0)} s (${(report.cases / seconds).toFixed(0)}/s), ` +
        `${report.corpus.length} inputs kept, seed ${seed}, findings: ${finding === undefined ? 0 : 1}`,
    )
    const outcomes = [...report.outcomes].sort(([, a], [, b]) => b - a).slice(0, 12)
    console.log(`  ${outcomes.map(([outcome, times]) => `${outcome}: ${times}`).join('; ')}`)
    if (finding !== undefined) tell(name, finding)
    else if (keeps) {
      const again = openCoverage(target.covers)
      const inputs = await distill(target, again, [...kept, ...report.corpus])
      again.close()
      writeKept(name, inputs)
    }
    return finding === undefined
  } finally {
    coverage.close()
    await target.close?.()
  }
}

function tell(name: string, { message, input, shrunkFrom }: Finding): void {
  console.log(`\nFINDING (${name}), shrunk from ${shrunkFrom} to ${input.length} bytes\n  ${message}`)
  console.log(JSON.stringify(input))
  console.log(Buffer.from(input, 'latin1').toString('hex'))
}
