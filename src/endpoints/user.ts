// The endpoints under /api/v1/user: a pro user's personal API token and alert webhook (spec §4, CONTRACT §5).

import type { Clock } from '../clock.ts'
import type { ApiTokenStore } from '../identity/api-tokens/api-token-store.ts'
import { hashApiToken, makeApiToken, type RandomBytes } from '../identity/api-tokens/api-tokens.ts'
import { messages } from '../refusals/catalog.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Plan } from '../users/user.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import type { GuardedEndpoint } from './local-endpoint.ts'
import type { RequireLiveCredential } from './signed-in.ts'
import { userOperations } from './user.openapi.ts'

interface Dependencies {
  apiTokens: Pick<ApiTokenStore, 'replace' | 'revoke'>
  webhooks: Webhooks
  randomBytes: RandomBytes
  clock: Clock
  /**
   * An access token outlives its session for a while, and a request whose body comes late its API token. Neither must
   * make a key or a webhook, which stay for good.
   */
  requireLiveCredential: RequireLiveCredential
  /** Resolves when the change is visible in this process: the previous token is invalid once the response is sent. */
  changesVisible(): Promise<void>
}

/**
 * Each throws StorageError when the store fails. The POST endpoints throw Refusal `token_invalid` for an access token of
 * a session that has ended and for a revoked API token, and `user_not_found` when the user was deleted or deactivated
 * after the guards ran; the webhook's POST throws `webhook_url_invalid`.
 */
export function createUserEndpoints({
  apiTokens,
  webhooks,
  randomBytes,
  clock,
  requireLiveCredential,
  changesVisible,
}: Dependencies): GuardedEndpoint[] {
  return [
    {
      kind: 'guarded',
      operation: userOperations.makeApiToken,
      plans,
      async handle(request) {
        const { user } = request
        const token = makeApiToken(randomBytes)
        const now = new Date(clock.now())
        const stored = await apiTokens.replace(user.id, hashApiToken(token), now, tx =>
          requireLiveCredential(request, tx),
        )
        if (stored === 'user_gone') throw new Refusal('user_not_found')
        await changesVisible()
        return {
          status: 201,
          body: { api_token: token, created_at: stored.created_at.toISOString() },
        }
      },
    },
    {
      kind: 'guarded',
      operation: userOperations.revokeApiToken,
      plans,
      async handle({ user }) {
        await apiTokens.revoke(user.id)
        await changesVisible()
        return { status: 200, body: { message: messages.apiTokenRevoked } }
      },
    },
    {
      kind: 'guarded',
      operation: userOperations.registerWebhook,
      plans,
      async handle(request) {
        // A refusal of the token comes before one of the body; where the webhook is stored, it is looked at again.
        await requireLiveCredential(request)
        const { user, body } = request
        const { url, secret, created_at } = await webhooks.register(user.id, body.value('url'), tx =>
          requireLiveCredential(request, tx),
        )
        return { status: 201, body: { url, secret, created_at: created_at.toISOString() } }
      },
    },
    {
      kind: 'guarded',
      operation: userOperations.removeWebhook,
      plans,
      async handle({ user }) {
        await webhooks.remove(user.id)
        return { status: 200, body: { message: messages.webhookRemoved } }
      },
    },
  ]
}

const plans: readonly Plan[] = ['pro']
