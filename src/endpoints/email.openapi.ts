// Requests and responses of the endpoints that verify or change one's email (CONTRACT §12, "Email").

import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'
import { authPrefix, codeRefusals, openRefusals } from './auth.openapi.ts'
import { signedInRefusals } from './signed-in.ts'

const { record, text } = terms

const open = { additionalProperties: true }
const code = Type.Optional(text('The 8 digits of the mail.'))
const token = Type.Optional(text('The token of the mail’s link, in the place of all else.'))

export const emailOperations = {
  requestVerification: {
    method: 'POST',
    path: `${authPrefix}/email/verify/request`,
    id: 'requestEmailVerification',
    summary: 'Asks for a mail with a code to verify one’s email',
    caller: 'user',
    responses: {
      200: { description: 'It is verified already.', body: terms.message },
      202: { description: 'Sent, unless a limit is reached.', body: terms.message },
    },
    refusals: mergeRefusals(signedInRefusals, { 501: ['mail_not_configured'] }),
  },
  verify: {
    method: 'POST',
    path: `${authPrefix}/email/verify`,
    id: 'verifyEmail',
    summary: 'Verifies an email, by a mail’s code or token',
    caller: 'anybody',
    body: record({ email: Type.Optional(text('The account’s, with `code`.')), code, token }, open),
    responses: { 200: { description: 'Verified.', body: terms.message } },
    refusals: mergeRefusals(openRefusals, codeRefusals),
  },
  requestChange: {
    method: 'POST',
    path: `${authPrefix}/email`,
    id: 'requestEmailChange',
    summary: 'Asks for a mail with a code to the address that one’s email is to be',
    caller: 'user',
    body: record({ email: text('The new one.'), current_password: text('The account’s.') }, open),
    responses: {
      202: {
        description: 'Sent, unless a limit is reached; also where the email is taken.',
        body: terms.message,
      },
    },
    refusals: mergeRefusals(signedInRefusals, {
      400: ['email_invalid'],
      401: ['credentials_invalid'],
      501: ['mail_not_configured'],
    }),
  },
  confirmChange: {
    method: 'POST',
    path: `${authPrefix}/email/confirm`,
    id: 'confirmEmailChange',
    summary: 'Changes one’s email, by the mail’s code, or by its token without signing in',
    caller: 'user',
    endsSessions: true,
    body: record({ code, token }, open),
    responses: {
      200: {
        description:
          'Changed. All other sessions are over; by token, all. The email of before is only verified, and no session ends.',
        body: record({ message: text('A French sentence.'), email: text('The new one.') }),
      },
    },
    refusals: mergeRefusals(signedInRefusals, codeRefusals, { 409: ['email_taken'] }),
  },
} as const satisfies Record<string, Operation>
