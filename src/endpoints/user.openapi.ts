// Requests and responses of the endpoints under /api/v1/user (spec §4, CONTRACT §5).
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import * as terms from '../openapi/schema-builders.ts'
import { guardRefusals } from './local-endpoint.ts'

const { record, text } = terms

const apiTokenPath = '/api/v1/user/api-token'
const webhookPath = '/api/v1/user/webhook'

const forPro = mergeRefusals(guardRefusals, { 403: ['plan_insufficient'] })

export const userOperations = {
  makeApiToken: {
    method: 'POST',
    path: apiTokenPath,
    id: 'makeApiToken',
    summary: 'Makes an API key for programs, in place of the one before',
    caller: 'user',
    responses: {
      201: {
        description: 'Made. The key is shown only here.',
        body: record({
          api_token: text('For `X-API-Key`.', { pattern: '^peage_[0-9A-Za-z]{36}$' }),
          created_at: terms.instant('Now.'),
        }),
      },
    },
    refusals: forPro,
  },
  revokeApiToken: {
    method: 'DELETE',
    path: apiTokenPath,
    id: 'revokeApiToken',
    summary: 'Revokes the API key',
    caller: 'user',
    responses: { 200: { description: 'There is none now.', body: terms.message } },
    refusals: forPro,
  },
  registerWebhook: {
    method: 'POST',
    path: webhookPath,
    id: 'registerWebhook',
    summary: 'Registers the address that alerts are sent to, in place of the one before',
    description:
      'The secret is another each time. With the same URL as before, deliveries carry a second signature by the secret before for 24 hours.',
    caller: 'user',
    body: record(
      {
        url: text('Absolute, `https`, of a public host, without user info.', {
          format: 'uri',
          maxLength: 2048,
        }),
      },
      { additionalProperties: true },
    ),
    responses: {
      201: {
        description: 'Registered. The secret is shown only here.',
        body: record({
          url: text('As sent.'),
          secret: text('What deliveries are signed with (Standard Webhooks).', { pattern: '^whsec_' }),
          created_at: terms.instant('Now.'),
        }),
      },
    },
    refusals: mergeRefusals(forPro, { 400: ['webhook_url_invalid'] }),
  },
  removeWebhook: {
    method: 'DELETE',
    path: webhookPath,
    id: 'removeWebhook',
    summary: 'Removes the webhook, and drops what is pending for it',
    caller: 'user',
    responses: { 200: { description: 'There is none now.', body: terms.message } },
    refusals: forPro,
  },
} as const satisfies Record<string, Operation>
