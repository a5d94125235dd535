// Guided fuzzing: keeps inputs that reach new code, and mutates them. The run ends at the first input that causes a
// violation, and shortens this input.

import { createRandom, type Random } from '../../../support/random.ts'
import type { Coverage } from './coverage.ts'
import { mutate } from './mutate.ts'
import { shrink } from './shrink.ts'
import type { Target } from './target.ts'

export interface Plan {
  readonly target: Target
  readonly coverage: Coverage
  readonly seed: number
  /** The inputs kept from previous runs. */
  readonly kept: readonly string[]
  /** The time limit in milliseconds. The run ends earlier if `cases` inputs have run. */
  readonly within: number
  readonly cases: number
}

export interface Report {
  cases: number
  /** Every input that reached new code or had a new outcome. Seeds are included. */
  readonly corpus: string[]
  /** The number of times that each outcome occurred. */
  readonly outcomes: Map<string, number>
  finding: Finding | undefined
}

export interface Finding {
  readonly message: string
  /** The input after it was shortened. Each character is one byte. */
  readonly input: string
  readonly shrunkFrom: number
}

export async function explore({ target, coverage, seed, kept, within, cases }: Plan): Promise<Report> {
  const random = createRandom(seed)
  const end = performance.now() + within
  const report: Report = { cases: 0, corpus: [], outcomes: new Map(), finding: undefined }
  const attempt = async (input: string) => {
    report.cases += 1
    const { outcome, violation } = await tryOut(target, input)
    if (violation !== undefined) {
      const shortest = await shrink(
        input,
        async shorter => (await tryOut(target, shorter)).violation !== undefined,
      )
      const message = (await tryOut(target, shortest)).violation ?? violation
      report.finding = { message, input: shortest, shrunkFrom: input.length }
      return false
    }
    const times = report.outcomes.get(outcome) ?? 0
    report.outcomes.set(outcome, times + 1)
    return times === 0
  }
  /**
   * Finds the inputs that reach new code. Uses bisection, because reading the coverage is slower than running inputs.
   */
  const learnFrom = async (inputs: readonly string[]): Promise<void> => {
    if (inputs.length === 0) return
    target.forget?.()
    coverage.take()
    for (const input of inputs) await tryOut(target, input)
    const ran = coverage.take()
    if (!ran.isNew()) return
    if (inputs.length === 1) {
      ran.learn()
      report.corpus.push(...inputs)
      return
    }
    const half = inputs.length >> 1
    await learnFrom(inputs.slice(0, half))
    await learnFrom(inputs.slice(half))
  }

  for (const input of new Set([...kept, ...target.seeds])) {
    const hasNewOutcome = await attempt(input)
    if (report.finding !== undefined) return report
    if (hasNewOutcome) report.corpus.push(input)
  }
  await learnFrom([...kept, ...target.seeds])
  if (report.corpus.length === 0) report.corpus.push('')

  let batchSize = 20
  while (report.cases < cases && performance.now() < end) {
    coverage.take()
    const startedAt = performance.now()
    const batch: string[] = []
    while (batch.length < batchSize && report.cases < cases) {
      const materials = { ...target, others: report.corpus }
      const input = mutate(pick(report.corpus, random), materials, random)
      const hasNewOutcome = await attempt(input)
      if (report.finding !== undefined) return report
      if (hasNewOutcome) report.corpus.push(input)
      else batch.push(input)
    }
    // Reading the coverage takes milliseconds. The size of the next batch is chosen so that reading takes about a fifth
    // of the time.
    const ranAt = performance.now()
    const ran = coverage.take()
    if (ran.isNew()) {
      await learnFrom(batch)
      ran.learn()
    } else {
      const [running, asking] = [ranAt - startedAt, performance.now() - ranAt]
      batchSize = Math.max(10, Math.min(5_000, Math.round((batchSize * asking * 4) / Math.max(running, 0.1))))
    }
  }
  return report
}

/** Selects short inputs that together reach the same code and the same outcomes as all inputs. */
export async function distill(
  target: Target,
  coverage: Coverage,
  inputs: readonly string[],
): Promise<string[]> {
  const kept: string[] = []
  const outcomes = new Set<string>()
  for (const input of [...new Set(inputs)].sort((a, b) => a.length - b.length)) {
    target.forget?.()
    coverage.take()
    const { outcome } = await tryOut(target, input)
    const ran = coverage.take()
    const isNew = ran.isNew()
    if (isNew) ran.learn()
    if (isNew || !outcomes.has(outcome)) kept.push(input)
    outcomes.add(outcome)
  }
  return kept
}

/** Runs one input. A slow run is repeated up to two times, because garbage collection may have delayed it. */
export async function tryOut(
  target: Target,
  input: string,
): Promise<{ outcome: string; violation: string | undefined }> {
  let took = 0
  for (let times = 0; times < 3; times++) {
    // Only the CPU time of this process counts, because other processes share the machine.
    const before = process.cpuUsage()
    let outcome: string
    try {
      outcome = await target.run(input)
    } catch (error) {
      const violation = error instanceof Error ? (error.stack ?? error.message) : String(error)
      return { outcome: 'violation', violation }
    }
    const { user, system } = process.cpuUsage(before)
    took = (user + system) / 1_000
    if (took <= target.maxMs) return { outcome, violation: undefined }
  }
  return { outcome: 'slow', violation: `took ${took.toFixed(0)} ms; the limit is ${target.maxMs} ms` }
}

/** Picks an input. Prefers later inputs, because they reached more code. */
function pick(corpus: readonly string[], random: Random): string {
  const at = random(2) === 0 ? random(corpus.length) : Math.max(random(corpus.length), random(corpus.length))
  return corpus[at] as string
}
