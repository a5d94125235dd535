// Computes the figures that the console shows for the last 15 minutes, one value per step of 10 s. Each value is
// computed from the growth of metric counters in its step.
import type { Clock } from '../clock.ts'
import type { FamilyJson } from '../observability/metrics/families.ts'
import { type CounterTotals, quantileMs, totalsOf } from '../observability/metrics/totals.ts'

export const stepSeconds = 10
const steps = 90

export interface OverviewSeries {
  /** The times at which the steps ended, in epoch seconds. */
  readonly at: number[]
  readonly requests: (number | null)[]
  /** Requests with a 5xx response. */
  readonly errors: (number | null)[]
  /** Refused requests by guard. */
  readonly refused: Readonly<Record<string, (number | null)[]>>
  readonly p50_ms: (number | null)[]
  readonly p99_ms: (number | null)[]
  /** The share of cache lookups that were hits, from 0 to 1. */
  readonly cache_hit_rate: (number | null)[]
}

export interface OverviewHistory {
  /** Reads the counters. Call it at the end of each step. Never rejects. */
  sample(): Promise<void>
  series(): OverviewSeries
}

interface Options {
  clock: Clock
  /** Returns the metrics of every process. @throws if a process does not respond; the step then has no values */
  gather(): Promise<readonly (readonly FamilyJson[])[]>
}

export function createOverviewHistory({ clock, gather }: Options): OverviewHistory {
  /** How much each counter grew in each step. The key is the number of the step, counted from the epoch. */
  const known = new Map<number, CounterTotals>()
  let last: { step: number; totals: CounterTotals } | undefined

  return {
    async sample() {
      const step = stepAt(clock.now())
      try {
        const totals = totalsOf(await gather())
        // If the clock was set back, the known steps are now in the future. They are no longer valid.
        if (last !== undefined && step < last.step) {
          known.clear()
          last = undefined
        }
        // If samples are missing, the difference covers several steps. No single step can get it, so it is dropped.
        if (last !== undefined && step === last.step + 1) known.set(step, differenceOf(totals, last.totals))
        if (last === undefined || step > last.step) last = { step, totals }
        for (const old of known.keys()) if (old <= step - steps) known.delete(old)
      } catch {
        last = undefined
      }
    },
    series() {
      const latest = last?.step ?? stepAt(clock.now())
      const numbers = Array.from({ length: steps }, (_, index) => latest - steps + 1 + index)
      const each = (value: (step: CounterTotals) => number | null) =>
        numbers.map(number => {
          const step = known.get(number)
          return step === undefined ? null : value(step)
        })
      const guards = Object.keys(last?.totals.refused ?? {})
      return {
        at: numbers.map(number => number * stepSeconds),
        requests: each(step => step.requests),
        errors: each(step => step.errors),
        refused: Object.fromEntries(guards.map(guard => [guard, each(step => step.refused[guard] ?? 0)])),
        p50_ms: each(step => quantileMs(step.durations, 0.5)),
        p99_ms: each(step => quantileMs(step.durations, 0.99)),
        cache_hit_rate: each(({ hits, lookups }) => (lookups === 0 ? null : hits / lookups)),
      }
    },
  }
}

/** Takes a sample immediately and at the end of each step. @returns a function that stops the sampling */
export function sampleEachStep(history: Pick<OverviewHistory, 'sample'>, clock: Clock): () => void {
  let timer: NodeJS.Timeout | undefined
  const schedule = () => {
    const now = clock.now()
    const next = (stepAt(now) + 1) * stepSeconds * 1000
    timer = setTimeout(() => {
      schedule()
      void history.sample()
    }, next - now).unref()
  }
  void history.sample()
  schedule()
  return () => clearTimeout(timer)
}

/**
 * Returns the number of the last finished step. The steps are numbered from the epoch. Half a second is added, because
 * timers may fire a little early.
 */
function stepAt(nowMs: number): number {
  return Math.floor((nowMs + 500) / 1000 / stepSeconds)
}

/** A counter shrinks only if a process has restarted. The difference is then 0. */
function differenceOf(now: CounterTotals, before: CounterTotals): CounterTotals {
  const grown = (value: number, was = 0) => Math.max(0, value - was)
  return {
    requests: grown(now.requests, before.requests),
    errors: grown(now.errors, before.errors),
    refused: Object.fromEntries(
      Object.entries(now.refused).map(([guard, count]) => [guard, grown(count, before.refused[guard])]),
    ),
    durations: new Map([...now.durations].map(([le, count]) => [le, grown(count, before.durations.get(le))])),
    hits: grown(now.hits, before.hits),
    lookups: grown(now.lookups, before.lookups),
  }
}
