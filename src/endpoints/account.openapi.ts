// Requests and responses of the endpoints of one's own account (CONTRACT §12, "Account").

import { accountExport } from '../openapi/account-export.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'
import { authPrefix } from './auth.openapi.ts'
import { signedInRefusals } from './signed-in.ts'

const { record, text } = terms
const path = `${authPrefix}/account`

export const accountOperations = {
  show: {
    method: 'GET',
    path,
    id: 'showOwnAccount',
    summary: 'Shows one’s account, with what is left of the day',
    caller: 'user',
    responses: {
      200: {
        description: 'The account.',
        body: record(
          {
            id: terms.id('The user’s id.'),
            email: text('Stripped and in lower case.'),
            email_verified: Type.Boolean({
              description: 'Whether the user showed that the email is theirs.',
            }),
            plan: terms.plan,
            created_at: terms.instant('When the account was created.'),
            daily_usage: terms.count('Uses counted today, in UTC.'),
            daily_limit: terms.nullable(terms.count('Of the plan; `null`: as many as one likes.')),
            resets_at: terms.instant('When the day ends: the next midnight UTC.'),
          },
          { title: 'OwnAccount', description: 'A user’s own account.' },
        ),
      },
    },
    refusals: signedInRefusals,
  },
  export: {
    method: 'GET',
    path: `${path}/export`,
    id: 'exportOwnAccount',
    summary: 'Exports all that is kept of one',
    caller: 'user',
    responses: {
      200: {
        description: 'For a file.',
        body: accountExport,
        headers: { 'content-disposition': '`attachment`' },
      },
    },
    refusals: signedInRefusals,
  },
  delete: {
    method: 'DELETE',
    path,
    id: 'deleteOwnAccount',
    summary: 'Deletes one’s account, with all that is kept of one',
    description: 'Only where the operator allows it: `account.deletion`.',
    caller: 'user',
    endsSessions: true,
    body: record({ current_password: text('The account’s.') }, { additionalProperties: true }),
    responses: { 200: { description: 'It is gone.', body: terms.message } },
    refusals: mergeRefusals(signedInRefusals, { 401: ['credentials_invalid'], 404: ['route_unknown'] }),
  },
} as const satisfies Record<string, Operation>
