// One target's run, told on standard output.
import { openCoverage } from './coverage.ts'
import { distil, explore, type Finding } from './explore.ts'
import { readKept, writeKept } from './kept.ts'
import { targets } from './targets.ts'

interface Plan {
  readonly seed: number
  /** Milliseconds. */
  readonly within: number
  readonly cases: number
  /** Writes what it found out to the corpus that is kept. */
  readonly keeps: boolean
}

/** @returns whether all that the target promises held */
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
        `${report.corpus.length} of them kept, seed ${seed}, findings: ${finding === undefined ? 0 : 1}`,
    )
    const outcomes = [...report.outcomes].sort(([, a], [, b]) => b - a).slice(0, 12)
    console.log(`  ${outcomes.map(([outcome, times]) => `${outcome}: ${times}`).join('; ')}`)
    if (finding !== undefined) tell(name, finding)
    else if (keeps) {
      const again = openCoverage(target.covers)
      const inputs = await distil(target, again, [...kept, ...report.corpus])
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
  console.log(`\nFINDING (${name}), ${input.length} of ${shrunkFrom} bytes\n  ${message}`)
  console.log(JSON.stringify(input))
  console.log(Buffer.from(input, 'latin1').toString('hex'))
}
