// What one request needs of everything that is built from one configuration (composition's snapshot has more).
import type { LocalEndpoints } from '../endpoints/endpoint-table.ts'
import type { Gate } from '../gate/gate.ts'
import type { Refusal } from '../refusals/refusal.ts'
import type { LogRequest } from './access-log.ts'
import type { ForwardRequest } from './forward-request.ts'

export interface RequestSnapshot {
  readonly gate: Gate
  readonly forward: ForwardRequest
  readonly endpoints: LocalEndpoints
  /** `server.timeouts.body_idle`, milliseconds. */
  readonly bodyIdleMs: number
  /** Nothing where no lines are written. */
  readonly logRequest: LogRequest | undefined
  jwks(): object
  /** Told of every refusal and fault before it is answered. */
  onRefusal(requestId: string, refusal: Refusal): void
  /** A request was parsed under it. */
  acquire(): void
  /** To be called once for each that was, when it is over. */
  release(): void
}
