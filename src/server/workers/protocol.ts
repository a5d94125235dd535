// What a primary and its workers ask of each other.
import type { StoreReachability } from '../../admin/health.ts'
import type { PackedConfig } from '../../config/reading/packed-config.ts'
import type { FamilyJson } from '../../observability/metrics/families.ts'
import type { TargetStatus } from '../../upstream/targets/target-status.ts'

// Types, not interfaces: those would have no index signature.
export type WorkerApi = {
  /** Serve with this configuration; answered when it listens, or with what keeps it from that. */
  serve(config: PackedConfig): Promise<{ address: string } | { fault: string }>
  /** Make all that another configuration needs, and serve nobody with it yet; or what keeps it from that. */
  prepare(config: PackedConfig): Promise<{ fault?: string }>
  /** Serve with what was prepared, or forget it. */
  finish(how: 'commit' | 'rollback'): Promise<true>
  /** Which stores it reaches. */
  reach(): Promise<StoreReachability>
  /** What it has counted, and how it stands. */
  metrics(): Promise<readonly FamilyJson[]>
  /** How every target stands to it. */
  targetStatus(): Promise<readonly TargetStatus[]>
  /** Answered when it has heard of all that is committed by now. */
  catch_up(): Promise<void>
  /** Drain, and exit: that is the answer. @param time milliseconds */
  drain(time: number): Promise<never>
}

export type PrimaryApi = {
  /** Said once: what a worker is asked before that is lost. */
  hello(): Promise<void>
  /** Answered `true` when every worker has heard of all that is committed by now. */
  changes_visible(): Promise<true>
}

/** Milliseconds that a worker may take to prepare a configuration, or to begin to serve with it. */
export const prepareTimeoutMs = 10_000

/** Milliseconds that an answer may take for which somebody waits. */
export const replyTimeoutMs = 1_000
