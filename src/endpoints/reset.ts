// The endpoints for a forgotten password (CONTRACT §12, "Password"). No mails are sent yet, so no code is right.
import { Refusal } from '../refusals/refusal.ts'
import type { OpenEndpoint } from './endpoint.ts'
import { resetOperations } from './reset.openapi.ts'

export function createResetEndpoints(): OpenEndpoint[] {
  return [
    {
      kind: 'open',
      operation: resetOperations.forgot,
      async answer() {
        throw new Refusal('mail_not_configured')
      },
    },
    {
      kind: 'open',
      operation: resetOperations.reset,
      async answer() {
        throw new Refusal('code_invalid')
      },
    },
  ]
}
