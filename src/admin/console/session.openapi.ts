// Describes the requests and responses of /console/session, where an operator's browser signs in and out.
import { operatorRoles } from '../../config/sections/admin.ts'
import type { Operation } from '../../openapi/operation.ts'
import { instant, oneOf, record, text } from '../../openapi/schema-builders.ts'

const path = '/console/session'

export const consoleOperations = {
  signIn: {
    method: 'POST',
    path,
    id: 'signInToConsole',
    summary: 'Exchanges a token for a cookie',
    description:
      'For the console’s own page: the request must carry an `Origin` equal to what the browser sees. The cookie lasts eight hours, stands for the token on the admin API, and ends with it.',
    caller: 'anybody',
    body: record({ token: text('A token of `admin.token` or `admin.tokens`.') }),
    responses: { 204: { description: 'Signed in.', headers: { 'set-cookie': 'The cookie.' } } },
    refusals: {
      400: ['request_invalid'],
      401: ['admin_unauthorized'],
      403: ['admin_unauthorized', 'admin_forbidden'],
      429: ['rate_limited'],
      503: ['service_unavailable'],
    },
  },
  show: {
    method: 'GET',
    path,
    id: 'showConsoleSession',
    summary: 'Says who is signed in to the console',
    caller: 'anybody',
    responses: {
      200: {
        description: 'By the cookie.',
        body: record({
          operator: text('The name of the token.'),
          may: oneOf(operatorRoles, 'The role of the token.'),
          expires_at: instant('When the session ends.'),
        }),
      },
    },
    refusals: { 401: ['admin_unauthorized'], 403: ['admin_unauthorized', 'admin_forbidden'] },
  },
  signOut: {
    method: 'DELETE',
    path,
    id: 'signOutOfConsole',
    summary: 'Ends the session of the cookie, and clears it',
    caller: 'anybody',
    responses: {
      204: { description: 'Also where there is none.', headers: { 'set-cookie': 'Clears the cookie.' } },
    },
    refusals: { 403: ['admin_unauthorized', 'admin_forbidden'] },
  },
} as const satisfies Record<string, Operation>
