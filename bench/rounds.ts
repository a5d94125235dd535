// Runs the rounds. Each round measures every row. Every second round measures the rows in reverse order.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { atEnd, throwIfInterrupted } from '../test/support/cleanup.ts'
import { messageOf } from './checks.ts'
import { bodyLength, type Row } from './contender.ts'
import type { Measured, Reply, Slice } from './load.ts'

/** The measurements of one row in one round. */
export interface Slices {
  readonly full: Measured
  /** The measurement at the fixed rate. */
  readonly paced?: Measured
}

/** The measurements of one round, by row name. */
export type Round = Readonly<Record<string, Slices>>

/**
 * The duration of the full load before the measurement, in milliseconds. Before this load, the process was idle while
 * other rows were measured. After 45 s without load, a request costs three times as much CPU time as usual. After 2 s
 * of new load, a request still costs 1.5 times as much.
 */
const warmUp = 2_500
/**
 * The duration of the load at the fixed rate before the measurement, in milliseconds. A short load is enough, because
 * the process is already warm from the full load.
 */
const settling = 500
/**
 * The warm-up before the first round. It consists of at most `slices` measurements of `time` milliseconds for each row.
 * A row that has served `requests` requests is warm and needs no more measurements.
 */
const heating = { time: 1_500, slices: 6, requests: 8_000 }

export interface RoundOptions {
  /** The name of the row with which the other rows are compared. */
  readonly base: string
  /** The number of rounds that must count. */
  readonly rounds: number
  /** The duration of each measurement without its warm-up, in milliseconds. */
  readonly time: number
  readonly connections: number
  /** The fixed rate for each process, in requests per second. */
  readonly rate: number
  /**
   * The minimum share of a CPU core that each row with `fillsItsCore` must use. If a row uses less, the benchmark
   * assumes that other programs used the machine. The round then does not count.
   */
  readonly busy: number
  onProgress(text: string): void
}

export interface Outcome {
  readonly rounds: readonly { readonly counts: boolean; readonly rows: Round }[]
  /** The errors of the rows that failed, by row name. */
  readonly failures: ReadonlyMap<string, string>
}

/** The maximum number of extra rounds. An extra round replaces a round that does not count. */
const repeats = 2

export async function runRounds(rows: readonly Row[], options: RoundOptions): Promise<Outcome> {
  const { base, rounds, time, rate, busy, onProgress } = options
  // Each row has its own load generator, because V8 optimizes it better if all responses come from one contender.
  const loads = new Map(rows.map(({ name }) => [name, startLoad()]))
  const failures = new Map<string, string>()

  const measure = (row: Row, slice: Pick<Slice, 'warmUp' | 'time' | 'perSecond'>) => {
    const { question, others = [], status, length = bodyLength, connections = options.connections } = row
    const { port, pids } = row.running
    const load = loads.get(row.name)
    if (load === undefined) throw new Error(`no load generator for ${row.name}`)
    return load.run({ port, pids, questions: [question, ...others], status, length, connections, ...slice })
  }
  /** Calls `use` for every row that has not failed yet. A row that fails is skipped from then on. */
  const withEach = async (some: readonly Row[], use: (row: Row) => Promise<void>) => {
    for (const row of some) {
      if (failures.has(row.name)) continue
      try {
        await use(row)
      } catch (error) {
        throwIfInterrupted()
        if (row.name === base) throw error
        failures.set(row.name, messageOf(error))
        onProgress(`failed: ${row.name}: ${messageOf(error)}`)
      }
    }
  }

  onProgress(`${rows.length} rows, rounds: ${rounds}, about ${minutes(secondsOf(rows, options))}`)
  const begun = performance.now()
  // V8 optimizes code after many calls, so slow rows need a longer warm-up.
  const served = new Map<string, number>()
  for (let slice = 0; slice < heating.slices; slice += 1) {
    const cold = rows.filter(({ name }) => (served.get(name) ?? 0) < heating.requests)
    await withEach(cold, async row => {
      const { requests } = await measure(row, { warmUp: 0, time: heating.time })
      served.set(row.name, (served.get(row.name) ?? 0) + requests)
    })
  }
  const all: { counts: boolean; rows: Round }[] = []
  const counted = () => all.filter(({ counts }) => counts).length
  while (counted() < rounds && all.length < rounds + repeats) {
    const round: Record<string, Slices> = {}
    await withEach(all.length % 2 === 0 ? rows : [...rows].reverse(), async row => {
      const full = await measure(row, { warmUp, time })
      const perSecond = rateOf(row, rate)
      if (perSecond === undefined) round[row.name] = { full }
      else round[row.name] = { full, paced: await measure(row, { warmUp: settling, time, perSecond }) }
    })
    const counts = rows.every(({ name, fillsItsCore }) => {
      const full = round[name]?.full
      return full === undefined || !fillsItsCore || full.cpu / full.seconds >= busy
    })
    all.push({ counts, rows: round })
    const which = counts
      ? `round ${counted()} of ${rounds}`
      : 'round does not count, because other programs used the machine'
    onProgress(`${minutes((performance.now() - begun) / 1000)}: ${which}: ${costsIn(round)}`)
  }
  for (const load of loads.values()) await load.stop()
  // If too few rounds count, the result uses all rounds, including those that do not count.
  const enough = counted() >= rounds
  return { rounds: all.map(({ counts, rows }) => ({ counts: counts || !enough, rows })), failures }
}

/** Returns the fixed rate of a row in requests per second, or `undefined` for a row without a fixed rate. */
export function rateOf({ workers = 1, connections }: Row, rate: number): number | undefined {
  return connections === undefined ? rate * workers : undefined
}

function secondsOf(rows: readonly Row[], { rounds, time }: RoundOptions): number {
  const slices = rows.map(row => warmUp + time + (row.connections === undefined ? settling + time : 0))
  const round = slices.reduce((sum, slice) => sum + slice, 0)
  // The estimate assumes that each row has two warm-up slices, because most rows are warm after two.
  return (rounds * round + rows.length * 2 * heating.time) / 1000
}

function minutes(seconds: number): string {
  return seconds < 120 ? `${seconds.toFixed(0)} s` : `${(seconds / 60).toFixed(0)} min`
}

function costsIn(round: Round): string {
  const costs = Object.entries(round).map(
    ([name, { full }]) => `${name} ${((full.cpu / full.requests) * 1e6).toFixed(1)}`,
  )
  return `µs of CPU per request: ${costs.join(' · ')}`
}

/** Starts a load generator in a separate process. */
export function startLoad() {
  const child = fork(fileURLToPath(new URL('load.js', import.meta.url)))
  return {
    run(slice: Slice): Promise<Measured> {
      return new Promise((resolve, reject) => {
        const patience = setTimeout(
          () => reject(new Error('the load generator does not respond')),
          slice.time + 60_000,
        )
        const fail = () => {
          clearTimeout(patience)
          reject(new Error('the load generator has ended'))
        }
        child.once('exit', fail)
        child.once('message', message => {
          clearTimeout(patience)
          child.off('exit', fail)
          const reply = message as Reply
          if ('error' in reply) reject(new Error(reply.error))
          else resolve(reply.measured)
        })
        if (child.connected) child.send(slice)
        else fail()
      })
    },
    stop: atEnd(() => child.connected && child.disconnect()),
  }
}
