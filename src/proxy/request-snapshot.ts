// The part of a snapshot that one request needs; composition's Snapshot extends it.
import type { LocalEndpoints } from '../endpoints/endpoint-table.ts'
import type { Gate } from '../gate/gate.ts'
import type { Refusal } from '../refusals/refusal.ts'
import type { LogRequest } from './access-log.ts'
import type { ForwardRequest } from './forward-request.ts'

export interface RequestSnapshot {
  readonly gate: Gate
  readonly forward: ForwardRequest
  readonly endpoints: LocalEndpoints
  /** `server.timeouts.body_idle`. */
  readonly bodyIdleMs: number
  /** Undefined if requests are not logged. */
  readonly logRequest: LogRequest | undefined
  jwks(): object
  /** Called with every refusal, a 500 included, before it is sent. */
  onRefusal(requestId: string, refusal: Refusal): void
  /** Call when a request begins under this snapshot. */
  acquire(): void
  /** Call once per `acquire`, when that request completes. */
  release(): void
}
