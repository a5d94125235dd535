// The endpoints of the sign-in with other identity providers: the list, the browser flow, and ID tokens.
import { mergeRefusals, type Operation, type Refusals } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'
import { authPrefix, openRefusals, tokenPair } from './auth.ts'

const { openRecord, record, text } = terms
const path = `${authPrefix}/providers`
const params = record({ id: text('The name of the provider.') })

const proof = {
  password: Type.Optional(
    text('The password of the existing account. Send it only after the error `account_exists`.'),
  ),
  reset: Type.Optional(
    Type.Boolean({
      description:
        'Set this to `true` after the error `account_exists` to sign in and remove the password, sessions, keys, webhook and other identities of the account.',
    }),
  ),
}

const signInRefusals: Refusals = mergeRefusals(openRefusals, {
  401: ['credentials_invalid'],
  403: ['provider_email_unverified', 'registration_closed'],
  409: ['account_exists'],
  429: ['rate_limited'],
  503: ['service_unavailable'],
})

const signInResponses = {
  200: { description: 'The first tokens of the session.', body: tokenPair },
  201: { description: 'The account is created. The first tokens of its session.', body: tokenPair },
}

export const externalOperations = {
  list: {
    method: 'GET',
    path,
    id: 'listProviders',
    summary: 'Lists the identity providers that users can sign in with',
    caller: 'anybody',
    responses: {
      200: {
        description: 'The providers, in the order of the configuration.',
        body: record({
          providers: Type.Array(
            record(
              {
                name: text('The name of the provider, for paths.'),
                label: text('The text for a button.'),
                browser: Type.Boolean({ description: 'Whether the sign-in in a browser is on.' }),
              },
              { title: 'Provider', description: 'An identity provider.' },
            ),
          ),
        }),
      },
    },
    refusals: openRefusals,
  },
  start: {
    method: 'GET',
    path: `${path}/:id/start`,
    refusesHead: true,
    metricLabel: 'external_start',
    id: 'startExternalSignIn',
    summary: 'Sends a browser to an identity provider',
    description: 'A browser opens this address. The endpoint is off if `auth.return_urls` is empty.',
    caller: 'anybody',
    params,
    query: record({
      return_url: text('The page that the browser returns to, exactly as in `auth.return_urls`.'),
      state: text('A text of 1 to 512 characters. The gateway sends it back to the page.'),
      code_challenge: text('The S256 challenge of the page’s `code_verifier` (RFC 7636).'),
    }),
    responses: {
      303: {
        description: 'A redirect to the provider, or to the page with `error` and `state`.',
        headers: { location: 'The next address.', 'set-cookie': 'The cookie of the attempt.' },
      },
    },
    refusals: mergeRefusals(openRefusals, {
      400: ['request_invalid'],
      404: ['provider_unknown', 'route_unknown'],
      429: ['rate_limited'],
      503: ['service_unavailable'],
    }),
  },
  callback: {
    method: 'GET',
    path: `${path}/:id/callback`,
    refusesHead: true,
    metricLabel: 'external_callback',
    id: 'finishExternalSignIn',
    summary: 'Receives a browser from an identity provider',
    description: 'Register this address at the provider as the redirect URI.',
    caller: 'anybody',
    params,
    responses: {
      303: {
        description:
          'A redirect to the page, with `code` and `state`, or with `error` and `state`. If the attempt has expired or cannot be read: a redirect to the first page of `auth.return_urls`, with only `error`.',
        headers: {
          location: 'The next address.',
          'set-cookie': 'Deletes the cookie of the attempt.',
          'referrer-policy': 'Always `no-referrer`.',
        },
      },
    },
    refusals: mergeRefusals(openRefusals, { 404: ['provider_unknown', 'route_unknown'] }),
  },
  exchange: {
    method: 'POST',
    path: `${authPrefix}/exchange`,
    id: 'exchangeSignInCode',
    summary: 'Exchanges the code of a sign-in in a browser for tokens',
    description:
      'The code works once, within 60 s. After the error `account_exists`, the same code works for 10 minutes in total, together with `password` or `reset`.',
    caller: 'anybody',
    body: openRecord({
      code: text('The `code` that the page received.'),
      code_verifier: text('The verifier of the page (RFC 7636).'),
      ...proof,
    }),
    responses: signInResponses,
    refusals: mergeRefusals(signInRefusals, { 400: ['code_invalid'], 404: ['route_unknown'] }),
  },
  token: {
    method: 'POST',
    path: `${path}/:id/token`,
    metricLabel: 'external_token',
    id: 'signInWithIdToken',
    summary: 'Exchanges an ID token of an identity provider for tokens',
    description: 'For apps. Each ID token works once.',
    caller: 'anybody',
    params,
    body: openRecord({
      id_token: text('The ID token.'),
      nonce: Type.Optional(
        text(
          'A text. Its SHA-256, in lower-case hex or base64url, must be the `nonce` of the ID token. Required if the ID token has a `nonce`.',
        ),
      ),
      ...proof,
    }),
    responses: signInResponses,
    refusals: mergeRefusals(signInRefusals, {
      400: ['id_token_missing'],
      401: ['id_token_invalid'],
      404: ['provider_unknown'],
      503: ['provider_unavailable'],
    }),
  },
} as const satisfies Record<string, Operation>
