// The last 15 minutes in steps of 10 s, for the console (CONTRACT §13): differences of the counters that metrics have.
import type { Clock } from '../clock.ts'
import type { FamilyJson } from '../observability/metrics/families.ts'
import { type CounterTotals, quantileMs, totalsOf } from '../observability/metrics/totals.ts'

export const stepSeconds = 10
const steps = 90

export interface OverviewSeries {
  /** Epoch seconds at which each step ended. */
  readonly at: number[]
  readonly requests: (number | null)[]
  /** Answered 5xx. */
  readonly errors: (number | null)[]
  /** By guard. */
  readonly refused: Readonly<Record<string, (number | null)[]>>
  readonly p50_ms: (number | null)[]
  readonly p99_ms: (number | null)[]
  /** 0 to 1. */
  readonly cache_hit_rate: (number | null)[]
}

export interface OverviewHistory {
  /** Reads the counters; to be called at the end of each step. Never rejects. */
  sample(): Promise<void>
  series(): OverviewSeries
}

interface Options {
  clock: Clock
  /** The metrics of every process. @throws where one cannot be asked: the step is not known then */
  gather(): Promise<readonly (readonly FamilyJson[])[]>
}

export function createOverviewHistory({ clock, gather }: Options): OverviewHistory {
  /** By the number of the step since the epoch. */
  const known = new Map<number, CounterTotals>()
  let last: { step: number; totals: CounterTotals } | undefined

  return {
    async sample() {
      const step = stepAt(clock.now())
      try {
        const totals = totalsOf(await gather())
        // The clock was set back: what is known is of steps that are still to come.
        if (last !== undefined && step < last.step) {
          known.clear()
          last = undefined
        }
        // What happened while nothing was read belongs to no step in particular.
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

/** Samples now, and at the end of each step. @returns a function that stops it */
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

/** The number since the epoch of the step that ended last; timers may be early by a little. */
function stepAt(nowMs: number): number {
  return Math.floor((nowMs + 500) / 1000 / stepSeconds)
}

/** Counters only grow. */
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
