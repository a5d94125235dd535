// Calculates the report of a recording. For each row, the report contains medians, and the cost relative to the cost of
// other rows in the same round.
import { barsOf, type Judged, judge } from './bars.ts'
import type { Measured } from './load.ts'
import type { Recording } from './recording.ts'
import type { Round } from './rounds.ts'
import { base } from './row-names.ts'
import { keepsUp, median, perRequest, ratio, requestsPerSecond, type Spread } from './spread.ts'

export interface Report {
  readonly notes: readonly string[]
  /** The fixed rate for each process, in requests per second. */
  readonly rate: number
  readonly rows: readonly Reported[]
  readonly absent: Recording['absent']
  readonly failed: Recording['failed']
  readonly bars: readonly Judged[]
}

export interface Reported {
  readonly name: string
  readonly full: {
    readonly requestsPerSecond: number
    /** CPU seconds per 1,000 requests. */
    readonly cpuPerThousand: number
    /** The CPU time per request, divided by the CPU time per request of the base row. */
    readonly ratio: Spread
    /** The highest memory usage in all rounds, in MiB. */
    readonly memory: number
  }
  /** The figures at the fixed rate. If a row has no fixed rate, these are its figures at full load. */
  readonly paced: {
    readonly requestsPerSecond: number
    readonly cpuPerThousand: number
    /** The median latency in milliseconds; null if the row missed the rate in at least half of the rounds. */
    readonly p50: number | null
    /** The p99 latency in milliseconds; null if the row missed the rate in at least half of the rounds. */
    readonly p99: number | null
  }
}

export function reportOf(recording: Recording): Report {
  const { settings, builds, absent, failed } = recording
  const rounds = recording.rounds.filter(({ counts }) => counts).map(({ rows }) => rows)
  const rows = recording.rows.filter(({ name }) => failed[name] === undefined)
  const rates = new Map(rows.map(({ name, rate }) => [name, rate ?? 0]))
  return {
    notes: notesOf(recording, rounds.length),
    rate: settings.rate,
    rows: rows.map(({ name, rate }) => reported(name, rate, rounds)),
    absent,
    failed,
    bars: judge(barsOf(builds), { rounds, rates, failed: new Set(Object.keys(failed)) }),
  }
}

function reported(name: string, rate: number | null, rounds: readonly Round[]): Reported {
  const slices = rounds.flatMap(round => round[name] ?? [])
  const full = slices.map(slice => slice.full)
  const paced = rate === null ? full : slices.flatMap(slice => slice.paced ?? [])
  const kept = paced.filter(measured => rate === null || keepsUp(measured, rate))
  const latency = (read: (measured: Measured) => number) =>
    kept.length * 2 > paced.length ? median(kept.map(read)) : null
  return {
    name,
    full: {
      requestsPerSecond: median(full.map(requestsPerSecond)),
      cpuPerThousand: median(full.map(perRequest)) * 1000,
      ratio: ratio(rounds, name, base, slice => perRequest(slice.full)),
      memory: Math.max(...full.map(({ memory }) => memory)),
    },
    paced: {
      requestsPerSecond: median(paced.map(requestsPerSecond)),
      cpuPerThousand: median(paced.map(perRequest)) * 1000,
      p50: latency(({ p50 }) => p50),
      p99: latency(({ p99 }) => p99),
    },
  }
}

/** The report marks a run with fewer rounds as a trial. */
const enough = 7

function notesOf(
  { date, machine, settings, stores, versions, rounds }: Recording,
  counted: number,
): string[] {
  const { processors, memoryGiB, kernel, node, commit } = machine
  const { time, connections, rate } = settings
  const leftOut = rounds.length - counted
  const isShort = counted !== settings.rounds || rounds.some(({ counts }) => !counts)
  return [
    `${date}, commit ${commit}: ${processors}, ${memoryGiB.toFixed(1)} GiB, ${kernel}, Node ${node}.`,
    `${counted === 1 ? '1 round' : `${counted} rounds`} of ${time} ms at full load and ${time} ms at ${thousands(rate)} requests/s, ${connections} connections.`,
    ...(counted < enough
      ? [`**This is a trial with fewer than ${enough} rounds. Do not draw conclusions from it.**`]
      : []),
    ...(leftOut > 0 ? [`${leftOut} rounds do not count, because other programs used the machine.`] : []),
    ...(isShort && leftOut === 0
      ? [
          '**Other programs used the machine in too many rounds. All rounds were counted, so the results are less reliable.**',
        ]
      : []),
    stores === null
      ? '**Without Postgres and Redis, the gateway used its embedded database. The CPU time of this database is included.**'
      : `${stores}. The CPU time of Postgres and Redis is not included.`,
    ...(versions.length > 0 ? [`${versions.join(', ')}.`] : []),
  ]
}

export function thousands(value: number): string {
  return value.toLocaleString('en-US')
}
