// What a primary and its workers ask of each other.
import type { Reach } from '../../admin/health.ts'
import type { PackedConfig } from '../../config/reading/packed-config.ts'
import type { FamilyJson } from '../../observability/metrics/families.ts'
import type { TargetStanding } from '../../upstream/targets/target-status.ts'

// Types, not interfaces: those would have no index signature.
export type AskedOfWorker = {
  /** Serve with this configuration; answered when it listens, or with what keeps it from that. */
  serve(config: PackedConfig): Promise<{ address: string } | { fault: string }>
  /** Make all that another configuration needs, and serve nobody with it yet; or what keeps it from that. */
  prepare(config: PackedConfig): Promise<{ fault?: string }>
  /** Serve with what was prepared, or forget it. */
  settle(how: 'take' | 'drop'): Promise<true>
  /** Which stores it reaches. */
  reach(): Promise<Reach>
  /** What it has counted, and how it stands. */
  metrics(): Promise<readonly FamilyJson[]>
  /** How every target stands to it. */
  standing(): Promise<readonly TargetStanding[]>
  /** Answered when it has heard of all that is committed by now. */
  catch_up(): Promise<void>
  /** Drain, and exit: that is the answer. @param time milliseconds */
  drain(time: number): Promise<never>
}

export type AskedOfPrimary = {
  /** Said once: what a worker is asked before that is lost. */
  hello(): Promise<void>
  /** Answered `true` when every worker has heard of all that is committed by now. */
  in_force(): Promise<true>
}

/** Milliseconds that a worker may take to prepare a configuration, or to begin to serve with it. */
export const settling = 10_000

/** Milliseconds that an answer may take for which somebody waits. */
export const patience = 1_000
