// Requests and responses of the endpoints for a forgotten password (CONTRACT §12, "Password").

import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'
import { authPrefix, codeRefusals, openRefusals } from './auth.openapi.ts'

const { record, text } = terms

const open = { additionalProperties: true }

export const resetOperations = {
  forgot: {
    method: 'POST',
    path: `${authPrefix}/password/forgot`,
    id: 'forgotPassword',
    summary: 'Asks for a mail with a code to reset the password',
    caller: 'anybody',
    body: record({ email: text('An email.') }, open),
    responses: {
      202: { description: 'Whether or not there is such an account.', body: terms.message },
    },
    refusals: mergeRefusals(openRefusals, {
      400: ['email_invalid'],
      501: ['mail_not_configured'],
      503: ['service_unavailable'],
    }),
  },
  reset: {
    method: 'POST',
    path: `${authPrefix}/password/reset`,
    id: 'resetPassword',
    summary: 'Sets a new password, by a mail’s code or token',
    caller: 'anybody',
    endsSessions: true,
    body: record(
      {
        email: Type.Optional(text('The account’s, with `code`.')),
        code: Type.Optional(text('The 8 digits of the mail.')),
        token: Type.Optional(text('The token of the mail’s link, in the place of email and code.')),
        new_password: text('8 to 1,024 characters.'),
      },
      open,
    ),
    responses: {
      200: {
        description: 'Set. Every session is over, and the email is verified.',
        body: terms.message,
      },
    },
    refusals: mergeRefusals(openRefusals, codeRefusals, {
      400: ['password_too_short', 'password_too_long', 'password_too_common'],
    }),
  },
} as const satisfies Record<string, Operation>
