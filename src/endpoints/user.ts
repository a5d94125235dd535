// The endpoints of a user's API token and alert webhook, for the plans that have them.
import type { Clock } from '../clock.ts'
import type { Plans } from '../config/plans.ts'
import { hashApiKey, makeApiKey, type RandomBytes } from '../identity/api-keys/api-key.ts'
import type { ApiTokenStore } from '../identity/api-keys/api-token-store.ts'
import { mergeRefusals, type Operation } from '../openapi/operation.ts'
import { instant, message, openRecord, record, text } from '../openapi/schema-builders.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { RateLimiter } from '../storage/rate-limiter.ts'
import type { Plan } from '../users/user.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { consumeKeyLimit } from './keys.ts'
import { type GuardedEndpoint, guardedEndpoint, guardRefusals } from './local-endpoint.ts'
import type { RequireLiveCredential } from './signed-in.ts'

const apiTokenPath = '/api/v1/user/api-token'
const webhookPath = '/api/v1/user/webhook'

const planRefusals = mergeRefusals(guardRefusals, { 403: ['plan_insufficient'] })

export const userOperations = {
  makeApiToken: {
    method: 'POST',
    path: apiTokenPath,
    id: 'makeApiToken',
    summary: 'Creates an API key, and revokes the previous key',
    caller: 'user',
    responses: {
      201: {
        description: 'The key is created. Only this response shows it.',
        body: record({
          api_token: text('The API key, for the header `X-API-Key`.', { pattern: '^peage_[0-9A-Za-z]{36}$' }),
          created_at: instant('The creation time of the key.'),
        }),
      },
    },
    refusals: planRefusals,
  },
  revokeApiToken: {
    method: 'DELETE',
    path: apiTokenPath,
    id: 'revokeApiToken',
    summary: 'Revokes the API key',
    caller: 'user',
    responses: { 200: { description: 'The API key is revoked, or there was none.', body: message } },
    refusals: planRefusals,
  },
  registerWebhook: {
    method: 'POST',
    path: webhookPath,
    id: 'registerWebhook',
    summary: 'Registers the webhook for alerts, and replaces the previous webhook',
    description:
      'Each registration creates a new secret. If the URL does not change, deliveries are also signed with the previous secret for 24 hours.',
    caller: 'user',
    body: openRecord({
      url: text('An absolute `https` URL of a public host, without user name or password.', {
        format: 'uri',
        maxLength: 2048,
      }),
    }),
    responses: {
      201: {
        description: 'The webhook is registered. Only this response shows the secret.',
        body: record({
          url: text('The URL as sent.'),
          secret: text('The secret that signs deliveries (Standard Webhooks).', { pattern: '^whsec_' }),
          created_at: instant('The registration time of the webhook.'),
        }),
      },
    },
    refusals: mergeRefusals(planRefusals, { 400: ['webhook_url_invalid'] }),
  },
  removeWebhook: {
    method: 'DELETE',
    path: webhookPath,
    id: 'removeWebhook',
    summary: 'Removes the webhook and drops its pending deliveries',
    caller: 'user',
    responses: { 200: { description: 'The webhook is removed, or there was none.', body: message } },
    refusals: planRefusals,
  },
} as const satisfies Record<string, Operation>

interface Dependencies {
  plans: Pick<Plans, 'withApiKeys' | 'withWebhook'>
  apiTokens: Pick<ApiTokenStore, 'replace' | 'revoke'>
  webhooks: Webhooks
  /** `auth.rate_limits.keys`. */
  limiter: RateLimiter
  randomBytes: RandomBytes
  clock: Clock
  /**
   * Checks the credential again before a key or a webhook is stored. Otherwise, an invalid credential could create a
   * key or webhook that stays valid. An access token outlives its session. An API token may be revoked while the
   * gateway waits for the body.
   */
  requireLiveCredential: RequireLiveCredential
  /** Resolves when all processes of this gateway have seen the change. From then on, they refuse the previous token. */
  changesVisible(): Promise<void>
}

/**
 * Each endpoint throws StorageError when the store fails. The POST endpoints throw Refusal `token_invalid` if the
 * session has ended or the API token is revoked. They throw Refusal `user_not_found` if the user was deleted or
 * deactivated after the guards ran. The POST endpoint of the webhook also throws Refusal `webhook_url_invalid`.
 */
export function createUserEndpoints({
  plans,
  apiTokens,
  webhooks,
  limiter,
  randomBytes,
  clock,
  requireLiveCredential,
  changesVisible,
}: Dependencies): GuardedEndpoint[] {
  const keyEndpoint = endpointFor(plans.withApiKeys)
  const webhookEndpoint = endpointFor(plans.withWebhook)
  return [
    keyEndpoint(userOperations.makeApiToken, async request => {
      const { user } = request
      const token = makeApiKey(randomBytes)
      const now = new Date(clock.now())
      const stored = await apiTokens.replace(user.id, hashApiKey(token), now, async tx => {
        await requireLiveCredential(request, tx)
        await consumeKeyLimit(limiter, user.id)
      })
      if (stored === 'user_gone') throw new Refusal('user_not_found')
      await changesVisible()
      return {
        status: 201,
        body: { api_token: token, created_at: stored.created_at.toISOString() },
      }
    }),
    keyEndpoint(userOperations.revokeApiToken, async ({ user }) => {
      await apiTokens.revoke(user.id)
      await changesVisible()
      return { status: 200, body: { message: messages.apiTokenRevoked } }
    }),
    webhookEndpoint(userOperations.registerWebhook, async request => {
      // The credential is checked before the body, and again in the transaction that stores the webhook.
      await requireLiveCredential(request)
      const { user, body } = request
      const { url, secret, created_at } = await webhooks.register(user.id, body.value('url'), tx =>
        requireLiveCredential(request, tx),
      )
      return { status: 201, body: { url, secret, created_at: created_at.toISOString() } }
    }),
    webhookEndpoint(userOperations.removeWebhook, async ({ user }) => {
      await webhooks.remove(user.id)
      return { status: 200, body: { message: messages.webhookRemoved } }
    }),
  ]
}

function endpointFor(plans: readonly Plan[]) {
  return (operation: Operation, handle: GuardedEndpoint['handle']) =>
    guardedEndpoint(operation, { keys: 'api_token', plans }, handle)
}
