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
    summary: 'Signs an operator in to the console',
    description:
      'The request must have the `Origin` of the console. The response sets a cookie. On the admin API, this cookie replaces the token. The cookie is valid for eight hours, or until the token is removed from the configuration.',
    caller: 'anybody',
    body: record({ token: text('The value of `admin.token`, or a token of `admin.tokens`.') }),
    responses: {
      204: { description: 'The operator is signed in.', headers: { 'set-cookie': 'The session cookie.' } },
    },
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
    summary: 'Shows the operator who is signed in to the console',
    caller: 'anybody',
    responses: {
      200: {
        description: 'The operator who is signed in.',
        body: record({
          operator: text('The name of the token.'),
          may: oneOf(operatorRoles, 'The role of the token.'),
          expires_at: instant('The expiry time of the session.'),
        }),
      },
    },
    refusals: { 401: ['admin_unauthorized'], 403: ['admin_unauthorized', 'admin_forbidden'] },
  },
  signOut: {
    method: 'DELETE',
    path,
    id: 'signOutOfConsole',
    summary: 'Signs the operator out of the console',
    caller: 'anybody',
    responses: {
      204: {
        description: 'The session has ended. The response is the same if there was no session.',
        headers: { 'set-cookie': 'An expired cookie, so that the browser deletes the cookie.' },
      },
    },
    refusals: { 403: ['admin_unauthorized', 'admin_forbidden'] },
  },
} as const satisfies Record<string, Operation>
