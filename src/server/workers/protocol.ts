// Defines the RPC methods of the primary and its workers.
import type { StoreReachability } from '../../admin/health.ts'
import type { Config } from '../../config/sections/schema.ts'
import type { MetricsPart } from '../../observability/metrics/exposition.ts'
import type { FamilyJson } from '../../observability/metrics/families.ts'
import type { TargetStatus } from '../../upstream/targets/target-status.ts'

// Types are used here instead of interfaces, because interfaces have no index signature.
export type WorkerApi = {
  /** Makes the worker serve clients with this configuration. The worker replies when it listens, or with an error. */
  serve(config: Config): Promise<{ address: string } | { error: string }>
  /**
   * Makes the worker build another configuration, but not use it for requests yet. If the worker fails to do so, it
   * replies with the reason. If a system error is the cause, the reply also contains the error code.
   */
  prepare(config: Config): Promise<PrepareReply>
  /** Activates the prepared configuration, or discards it. */
  finish(how: 'commit' | 'rollback'): Promise<true>
  reach(): Promise<StoreReachability>
  metrics(part: MetricsPart): Promise<readonly FamilyJson[]>
  targetStatus(): Promise<readonly TargetStatus[]>
  /** Replies when the worker has received every change that is already committed. */
  catch_up(): Promise<void>
  /**
   * Makes the worker drain and exit. The worker does not reply before it exits.
   * @param time the time limit in milliseconds
   */
  drain(time: number): Promise<never>
}

export interface PrepareReply {
  readonly error?: string
  readonly code?: string | undefined
}

export type PrimaryApi = {
  /** The worker calls this once, when it accepts calls. Calls that the primary has sent before are lost. */
  hello(): Promise<void>
  /** Replies `true` when every worker has received every change that is already committed. */
  changes_visible(): Promise<true>
}

/** The maximum time for a worker to prepare a configuration, or to activate it. */
export const prepareTimeoutMs = 10_000

/** The maximum wait for a worker's reply while a client or an operator waits for the result. */
export const replyTimeoutMs = 1_000
