// Tests the report of a benchmark recording: medians, quartiles, missed rates and ignored rounds.
import { describe, expect, it } from 'vitest'
import type { Measured } from '../../bench/load.ts'
import type { Recording } from '../../bench/recording.ts'
import { reportOf } from '../../bench/report.ts'
import { base, kinds, ours, rowName } from '../../bench/row-names.ts'

const bearer = rowName(ours, kinds.bearer)

/** Returns a measurement that took one second. `cpu` and `p99` are in milliseconds. */
function measured(requests: number, cpu: number, p99 = 1): Measured {
  return { requests, seconds: 1, cpu: cpu / 1_000, memory: 100, p50: 0.5, p99 }
}

/**
 * @param pacedRequests how many of the 3,000 requests at the fixed rate the row `bearer` completed
 * @param counts for each round, whether the report includes the round; `true` if the value is missing
 */
function recording(
  bearerCpu: readonly number[],
  pacedRequests: number,
  counts: readonly boolean[],
): Recording {
  return {
    date: '2026-01-01',
    machine: { processors: '2 × a processor', memoryGiB: 4, kernel: 'Linux', node: '20.20.2', commit: 'abc' },
    stores: 'Postgres, Redis',
    versions: [],
    settings: { rounds: counts.length, time: 1_000, connections: 48, rate: 3_000, busy: 0.7 },
    builds: [],
    rows: [base, bearer].map(name => ({ name, rate: 3_000 })),
    rounds: bearerCpu.map((cpu, at) => ({
      counts: counts[at] ?? true,
      rows: {
        [base]: { full: measured(1_000, 100), paced: measured(3_000, 400, 2) },
        [bearer]: { full: measured(1_000, cpu), paced: measured(pacedRequests, 400, 3) },
      },
    })),
    absent: {},
    failed: {},
  }
}

const verdict = (report: ReturnType<typeof reportOf>, cost: string) =>
  report.bars.find(bar => bar.cost === cost && bar.row === bearer && bar.against === base)?.verdict

describe('the report of a recording', () => {
  it('shows the median and the quartiles of the ratio between the CPU per request of two rows', () => {
    const [, row] = reportOf(recording([50, 60, 70, 80, 90], 3_000, [])).rows
    expect(row?.full.cpuPerThousand).toBeCloseTo(0.07)
    const { median = 0, lowerQuartile = 0, upperQuartile = 0, pairs } = row?.full.ratio ?? {}
    expect([median, lowerQuartile, upperQuartile].map(one => one.toFixed(2))).toEqual([
      '0.70',
      '0.60',
      '0.80',
    ])
    expect(pairs).toBe(5)
  })

  it('ignores the rounds that are marked as not counted', () => {
    const [, row] = reportOf(recording([50, 900, 50], 3_000, [true, false, true])).rows
    expect(row?.full.ratio.upperQuartile).toBeCloseTo(0.5)
  })

  it('shows the reached rate and no latency if a row misses the fixed rate', () => {
    const report = reportOf(recording([50], 2_000, []))
    expect(report.rows[1]?.paced).toMatchObject({ requestsPerSecond: 2_000, p50: null, p99: null })
    expect(verdict(report, 'p99, fixed rate')).toBe('absent')
  })

  it('marks a target value as missed if the lower quartile is above the value, and otherwise as met', () => {
    const report = reportOf(recording([60, 70, 80], 3_000, []))
    expect(verdict(report, 'CPU per request')).toBe('met')
    expect(verdict(report, 'p99, fixed rate')).toBe('missed')
    expect(verdict(reportOf(recording([71, 71, 71], 3_000, [])), 'CPU per request')).toBe('missed')
  })
})
