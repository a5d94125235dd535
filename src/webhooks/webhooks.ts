// Registers and removes the webhook of a user, for the HTTP endpoints. A user has at most one webhook. A new
// registration replaces the whole webhook.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/sections/schema.ts'
import type { Sealer } from '../identity/sealer.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { TransactionStep } from '../storage/database.ts'
import { createResolver, findDestination } from './address/resolve.ts'
import { hostOf, parseWebhookUrl } from './address/webhook-url.ts'
import { createWebhookSecrets, generateSecret } from './webhook-secret.ts'
import type { WebhookStore } from './webhook-store.ts'

interface RegisteredWebhook {
  /** The URL as the user wrote it. */
  url: string
  /** The secret, `whsec_…`. Only the response to the registration contains it. */
  secret: string
  created_at: Date
}

export interface Webhooks {
  /**
   * Replaces the user's webhook, with a new secret.
   * @param precondition a function that runs after the user is locked; if it throws, nothing changes
   * @throws Refusal `webhook_url_invalid`
   * @throws Refusal `user_not_found` if the user was deleted or deactivated in the meantime
   * @throws StorageError
   */
  register(userId: number, url: unknown, precondition: TransactionStep): Promise<RegisteredWebhook>
  /** Does nothing if the user has no webhook. @throws StorageError */
  remove(userId: number): Promise<void>
}

interface Dependencies {
  stores: { readonly webhooks: WebhookStore }
  /** Undefined if `auth.key_secret` is not set. */
  sealer: Sealer | undefined
  clock: Clock
}

export function createWebhooks(
  { allow_private_networks: allowPrivate }: Config['webhooks'],
  { stores, sealer, clock }: Dependencies,
): Webhooks {
  const store = stores.webhooks
  const secrets = createWebhookSecrets(sealer)
  const rules = { allowPrivate, resolve: createResolver({ allowPrivate }) }
  return {
    async register(userId, written, precondition) {
      const url = parseWebhookUrl(written, rules)
      if (url === 'invalid' || (await findDestination(url, rules)).kind === 'forbidden')
        throw new Refusal('webhook_url_invalid')
      const secret = generateSecret(randomBytes)
      const stored = await store.put(
        userId,
        { url: written as string, receiver: receiverOf(url), secret: secrets.seal(secret, userId) },
        new Date(clock.now()),
        precondition,
      )
      if (stored === 'user_gone') throw new Refusal('user_not_found')
      return { url: written as string, secret, created_at: stored }
    },

    async remove(userId) {
      await store.remove(userId, new Date(clock.now()))
    },
  }
}

/** Returns `host:port`, which is the same for all URLs of one server. */
function receiverOf(url: URL): string {
  return `${hostOf(url)}:${url.port || '443'}`
}
