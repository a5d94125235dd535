// What `peage users` writes in the audit: the entry of the endpoint that does the same, by the operator `cli` (CONTRACT §13).
import { randomUUID } from 'node:crypto'
import { auditedFields } from '../../admin/api/user-input.ts'
import { type AuditRecord, createAuditStore } from '../../admin/audit-store.ts'
import type { Clock } from '../../clock.ts'
import { type OperationOfOperators, successStatus } from '../../openapi/operation.ts'
import type { Database, TransactionStep } from '../../storage/database.ts'

/** What is done to a user; `fields` are the ones that are set. */
interface Action {
  readonly operation: Pick<OperationOfOperators, 'method' | 'path' | 'responses'>
  readonly userId: number
  readonly fields?: object
  /** The values of these fields before the change. */
  readonly previous?: Readonly<Record<string, unknown>> | undefined
}

export interface CliAudit {
  /** Stores the entry with the change: neither is there without the other. */
  audited(action: Action): TransactionStep
  /** Writes the entry of something that changes nothing. @throws StorageError */
  written(action: Action): Promise<void>
}

export function createCliAudit(database: Database, clock: Clock): CliAudit {
  const audit = createAuditStore(database)
  const recordOf = ({ operation, userId, fields = {}, previous }: Action): AuditRecord => ({
    at: new Date(clock.now()),
    operator: 'cli',
    channel: 'cli',
    method: operation.method,
    route: operation.path,
    user_id: userId,
    changes: auditedFields(fields),
    previous: previous ?? null,
    status: successStatus(operation),
    // No request has been made: an id that nothing else has.
    request_id: randomUUID(),
  })
  return {
    audited: action => audit.inTransaction(recordOf(action)),
    written: action => audit.write(recordOf(action)),
  }
}
