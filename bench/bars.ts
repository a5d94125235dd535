// Defines the bars of the benchmark and judges them. A bar limits the cost of one row relative to the cost of another
// row. A row is one kind of request to one program.
import type { Round, Slices } from './rounds.ts'
import { base, floor, kinds, ours, peers, rowName } from './row-names.ts'
import { keepsUp, perRequest, ratio, requestsPerSecond, type Spread } from './spread.ts'

type Cost =
  | 'CPU per request'
  | 'CPU per request, fixed rate'
  | 'time per request'
  | 'p99, fixed rate'
  | 'p50 of one client'
  | 'memory'

export interface Bar {
  readonly cost: Cost
  readonly row: string
  readonly against: string
  readonly atMost: number
  readonly aim?: number
}

export interface Judged extends Bar {
  readonly ratio?: Spread
  /**
   * `met` means that the lower quartile of `ratio` is at most `atMost`. `absent` means that no round has this cost for
   * both rows.
   */
  readonly verdict: 'met' | 'missed' | 'absent' | 'failed'
}

/** @param builds the names of the builds that `--also` adds to the run */
export function barsOf(builds: readonly string[]): Bar[] {
  const mine = (kind: keyof typeof kinds) => rowName(ours, kinds[kind])
  const bearer = mine('bearer')
  const cpu: Omit<Bar, 'cost'>[] = [
    { row: bearer, against: base, atMost: 0.7, aim: 0.55 },
    { row: mine('apiKey'), against: base, atMost: 0.72 },
    { row: bearer, against: floor, atMost: 1.08, aim: 0.95 },
    { row: mine('admitted'), against: base, atMost: 1, aim: 0.85 },
    { row: mine('refused'), against: base, atMost: 0.4 },
    { row: mine('keyWithoutScopes'), against: mine('apiKey'), atMost: 1.05 },
    { row: mine('keyWithScopes'), against: mine('keyWithoutScopes'), atMost: 1.05 },
    { row: mine('quotaCounted'), against: mine('admitted'), atMost: 1.2 },
    { row: mine('quotaExhausted'), against: mine('refused'), atMost: 1.1 },
    { row: bearer, against: peers.nginx, atMost: 0.5 },
    { row: bearer, against: peers.nginxCache, atMost: 3.6, aim: 2.5 },
    { row: bearer, against: peers.caddy, atMost: 0.34 },
    { row: bearer, against: peers.expressGateway, atMost: 0.11 },
    { row: mine('inSession'), against: bearer, atMost: 1.02 },
    { row: mine('forwardAuth'), against: bearer, atMost: 0.8 },
    { row: mine('manyAddresses'), against: bearer, atMost: 1.03 },
    { row: mine('twoWorkers'), against: bearer, atMost: 1.15 },
  ]
  return [
    ...cpu.map((bar): Bar => ({ cost: 'CPU per request', ...bar })),
    // Two workers are also compared at the fixed rate, because each process of both rows then gets the same load. At
    // full load, the busier process handles more requests per turn of its event loop. This makes its requests cheaper.
    { cost: 'CPU per request, fixed rate', row: mine('twoWorkers'), against: bearer, atMost: 1.15 },
    // If the time per request is at most 1.25 times as long, at least 80 % as many requests are served per second.
    { cost: 'time per request', row: mine('quotaCounted'), against: mine('admitted'), atMost: 1.25 },
    { cost: 'p99, fixed rate', row: bearer, against: base, atMost: 1 },
    ...builds.map(
      (build): Bar => ({
        cost: 'p50 of one client',
        row: mine('oneClient'),
        against: rowName(build, kinds.oneClient),
        atMost: 1.05,
      }),
    ),
    { cost: 'memory', row: bearer, against: base, atMost: 1.6, aim: 1.4 },
    { cost: 'memory', row: mine('admitted'), against: base, atMost: 1.6, aim: 1.4 },
  ]
}

interface Evidence {
  readonly rounds: readonly Round[]
  /** The fixed rate in requests per second, by row name. */
  readonly rates: ReadonlyMap<string, number>
  readonly failed: ReadonlySet<string>
}

export function judge(bars: readonly Bar[], { rounds, rates, failed }: Evidence): Judged[] {
  const costs: Record<Cost, (slices: Slices, row: string) => number | undefined> = {
    'CPU per request': ({ full }) => perRequest(full),
    'CPU per request, fixed rate': ({ paced }) => paced && perRequest(paced),
    'time per request': ({ full }) => 1 / requestsPerSecond(full),
    'p99, fixed rate': ({ paced }, row) =>
      paced !== undefined && keepsUp(paced, rates.get(row) ?? 0) ? paced.p99 : undefined,
    'p50 of one client': ({ full }) => full.p50,
    memory: ({ full }) => full.memory,
  }
  return bars.map(bar => {
    if (failed.has(bar.row) || failed.has(bar.against)) return { ...bar, verdict: 'failed' }
    const found = ratio(rounds, bar.row, bar.against, costs[bar.cost])
    if (found.pairs === 0) return { ...bar, verdict: 'absent' }
    return { ...bar, ratio: found, verdict: found.lowerQuartile <= bar.atMost ? 'met' : 'missed' }
  })
}
