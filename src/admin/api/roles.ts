// Checks what the role of an operator's token allows. Each operation lists the roles that may call it.
import type { OperatorRole } from '../../config/sections/admin.ts'
import type { OperationOfOperators } from '../../openapi/operation.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Operator } from '../operators.ts'

type Bearer = Pick<Operator, 'may'> | undefined

type Judged = Pick<OperationOfOperators, 'roles' | 'fieldsOf'>

/** @throws Refusal 403 `admin_forbidden` if the role is not allowed to call the operation */
export function requireRole(operation: Judged, bearer: Bearer): OperatorRole {
  const may = bearer?.may
  if (may === undefined || !isAllowed(operation, may))
    throw new Refusal('admin_forbidden', { reason: 'role' })
  return may
}

/**
 * Checks that the role may send every member of the body. Unknown members are checked too.
 * @throws Refusal 403 `admin_forbidden`
 */
export function requireFields(operation: Judged, bearer: Bearer, names: readonly string[]): void {
  if (bearer === undefined || !isAllowed(operation, bearer.may, names))
    throw new Refusal('admin_forbidden', { reason: 'role' })
}

export function isAllowed(
  { roles, fieldsOf }: Judged,
  may: OperatorRole,
  names: readonly string[] = [],
): boolean {
  if (may === 'all') return true
  const fields = fieldsOf?.[may]
  return roles.includes(may) && (fields === undefined || names.every(name => fields.includes(name)))
}
