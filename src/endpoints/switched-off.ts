// Finds the operations that the configuration switches off.
import type { Config } from '../config/sections/schema.ts'
import type { Operation } from '../openapi/operation.ts'
import { accountOperations } from './account.ts'
import { externalOperations } from './external.ts'

export function switchedOffOperations({
  account,
  auth,
}: Pick<Config, 'account' | 'auth'>): readonly Operation[] {
  const { start, callback, exchange } = externalOperations
  return [
    ...(account.deletion ? [] : [accountOperations.delete]),
    ...(auth.return_urls.length > 0 ? [] : [start, callback, exchange]),
  ]
}
