// What the role of an operator's token lets it do (CONTRACT §13): the operations themselves say which roles may call.
import type { OperatorRole } from '../../config/schema/admin.ts'
import type { OperationOfOperators } from '../../openapi/operation.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Operator } from '../operators.ts'

type Bearer = Pick<Operator, 'may'> | undefined

/** @returns the role @throws Refusal 403 `admin_forbidden` */
export function requireRole({ roles }: Pick<OperationOfOperators, 'roles'>, bearer: Bearer): OperatorRole {
  const may = bearer?.may
  if (may === undefined || (may !== 'all' && !roles.includes(may))) throw new Refusal('admin_forbidden')
  return may
}

/**
 * Judges a body by all its members, also those that no body may have: what is refused does not depend on the role.
 * @throws Refusal 403 `admin_forbidden`
 */
export function requireFields(
  { fieldsOf }: Pick<OperationOfOperators, 'fieldsOf'>,
  bearer: Bearer,
  names: readonly string[],
): void {
  const allowed = bearer === undefined ? [] : fieldsOf?.[bearer.may]
  if (allowed !== undefined && names.some(name => !allowed.includes(name)))
    throw new Refusal('admin_forbidden')
}
