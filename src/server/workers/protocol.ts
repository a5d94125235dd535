// The RPC methods of the primary and its workers.
import type { StoreReachability } from '../../admin/health.ts'
import type { Config } from '../../config/sections/schema.ts'
import type { MetricsPart } from '../../observability/metrics/exposition.ts'
import type { FamilyJson } from '../../observability/metrics/families.ts'
import type { TargetStatus } from '../../upstream/targets/target-status.ts'

// Types, because interfaces have no index signature.
export type WorkerApi = {
  /** Serves with this configuration. Replies when the worker listens, or with the reason why it cannot. */
  serve(config: Config): Promise<{ address: string } | { error: string }>
  /**
   * Builds another configuration, without serving requests with it yet. Replies with the reason if it fails, and with the
   * code of a machine failure.
   */
  prepare(config: Config): Promise<PrepareReply>
  /** Activates the prepared configuration, or discards it. */
  finish(how: 'commit' | 'rollback'): Promise<true>
  /** Which stores the worker reaches. */
  reach(): Promise<StoreReachability>
  /** The worker's counters and gauges. */
  metrics(part: MetricsPart): Promise<readonly FamilyJson[]>
  /** The status of every target, as this worker sees it. */
  targetStatus(): Promise<readonly TargetStatus[]>
  /** Replies when the worker has received every change committed by now. */
  catch_up(): Promise<void>
  /** Drains and exits; the exit is the reply. @param time milliseconds */
  drain(time: number): Promise<never>
}

export interface PrepareReply {
  readonly error?: string
  readonly code?: string | undefined
}

export type PrimaryApi = {
  /** Sent once, when the worker takes calls: earlier calls to it are lost. */
  hello(): Promise<void>
  /** Replies `true` when every worker has received every change committed by now. */
  changes_visible(): Promise<true>
}

/** For a worker to prepare a configuration, or to activate it. */
export const prepareTimeoutMs = 10_000

/** For replies that a client or an operator waits for. */
export const replyTimeoutMs = 1_000
