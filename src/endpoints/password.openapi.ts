// Request and response of the change of one's own password (CONTRACT §12, "Password").
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { authPrefix, tokenPair } from './auth.openapi.ts'
import { signedInRefusals } from './signed-in.ts'

const { record, text } = terms

export const passwordOperations = {
  change: {
    method: 'POST',
    path: `${authPrefix}/password`,
    id: 'changeOwnPassword',
    summary: 'Changes one’s password',
    description: 'Ends every session, the current one too, and opens a new one.',
    caller: 'user',
    endsSessions: true,
    body: record(
      { current_password: text('The account’s.'), new_password: text('8 to 1,024 characters.') },
      { additionalProperties: true },
    ),
    responses: { 200: { description: 'The new session’s first tokens.', body: tokenPair } },
    refusals: mergeRefusals(signedInRefusals, {
      400: ['password_too_short', 'password_too_long', 'password_too_common', 'password_unchanged'],
      401: ['credentials_invalid'],
    }),
  },
} as const satisfies Record<string, Operation>
