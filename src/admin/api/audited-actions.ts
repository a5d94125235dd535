// The operations that the audit records, and the name of the operation that an entry belongs to.
import type { AuditRecord } from '../audit-store.ts'
import { consoleOperations } from '../console/session.openapi.ts'
import { emitAlert } from './emit-alert.ts'
import { retryDelivery } from './retry-delivery.ts'
import { userOperations } from './users.openapi.ts'

const { show: _show, sessions: _sessions, ...audited } = userOperations

const operations = [...Object.values(audited), emitAlert, retryDelivery, consoleOperations.signIn]

export type AuditedAction = (typeof operations)[number]['id']

export const auditedActions: readonly AuditedAction[] = operations.map(({ id }) => id)

/** Returns the action of an entry; null if it is not in the list, as for a refused read. */
export function actionOf({ method, route }: Pick<AuditRecord, 'method' | 'route'>): AuditedAction | null {
  return operations.find(one => one.method === method && one.path === route)?.id ?? null
}

/** Returns the method and the path pattern of an action. */
export function operationOf(action: AuditedAction): Pick<AuditRecord, 'method' | 'route'> | undefined {
  const found = operations.find(({ id }) => id === action)
  return found && { method: found.method, route: found.path }
}
