// Builds the audit entries of commands that change the database directly.
import { randomUUID } from 'node:crypto'
import { auditedFields } from '../../admin/api/user-input.ts'
import type { AuditRecord } from '../../admin/audit-store.ts'
import type { Clock } from '../../clock.ts'
import { type OperationOfOperators, successStatus } from '../../openapi/operation.ts'

export interface AuditedAction {
  readonly operation: Pick<OperationOfOperators, 'method' | 'path' | 'responses'>
  /** Null if the action does not concern a single user. */
  readonly userId: number | null
  readonly fields?: object
  readonly previous?: AuditRecord['previous'] | undefined
}

/** Returns the audit entry that the endpoint of the operation would write, but with `cli` as the operator. */
export function auditEntry(
  clock: Clock,
  { operation, userId, fields = {}, previous = null }: AuditedAction,
): AuditRecord {
  return {
    at: new Date(clock.now()),
    operator: 'cli',
    channel: 'cli',
    method: operation.method,
    route: operation.path,
    user_id: userId,
    changes: auditedFields(fields),
    previous,
    status: successStatus(operation),
    // A command has no request id, so the entry gets a new one.
    request_id: randomUUID(),
  }
}
