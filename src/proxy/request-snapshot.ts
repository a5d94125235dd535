// What one request needs of everything that is built from one configuration (composition's snapshot has more).
import type { OwnEndpoints } from '../endpoints/endpoint-table.ts'
import type { Gate } from '../gate/gate.ts'
import type { LogRequest } from './access-log.ts'
import type { ToUpstream } from './handle-request.ts'

export interface RequestSnapshot {
  readonly gate: Gate
  readonly toUpstream: ToUpstream
  readonly own: OwnEndpoints
  /** `server.timeouts.body_idle`, milliseconds. */
  readonly bodyIdle: number
  /** Nothing where no lines are written. */
  readonly logRequest: LogRequest | undefined
  jwks(): object
  /** A request was read under it. */
  begin(): void
  /** To be called once for each that has begun, when it is over. */
  end(): void
}
