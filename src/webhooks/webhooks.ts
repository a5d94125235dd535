// A user's webhook, for its owner's endpoints: one per user, replaced as a whole (CONTRACT §5).
import type { Clock } from '../clock.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { TransactionStep } from '../storage/database.ts'
import { type DestinationRules, findDestination } from './address/resolve.ts'
import { hostOf, parseWebhookUrl } from './address/webhook-url.ts'
import { generateSecret, type WebhookSecrets } from './webhook-secret.ts'
import type { WebhookStore } from './webhook-store.ts'

interface RegisteredWebhook {
  /** As the user wrote it. */
  url: string
  /** `whsec_…`; only this response shows it. */
  secret: string
  created_at: Date
}

export interface Webhooks {
  /**
   * Replaces the user's webhook, with a new secret.
   * @param url the body's member, of any type
   * @param precondition run once the user is locked; what it throws leaves everything as it was
   * @throws Refusal `webhook_url_invalid`; `user_not_found` when the user was deleted or deactivated in the meantime
   * @throws StorageError
   */
  register(userId: number, url: unknown, precondition: TransactionStep): Promise<RegisteredWebhook>
  /**
   * Removes the user's webhook and drops its pending deliveries; does nothing if there is none.
   * @throws StorageError
   */
  remove(userId: number): Promise<void>
}

interface Dependencies extends DestinationRules {
  store: Pick<WebhookStore, 'put' | 'remove'>
  secrets: WebhookSecrets
  randomBytes(size: number): Buffer
  clock: Clock
}

export function createWebhooks(dependencies: Dependencies): Webhooks {
  const { store, secrets, randomBytes, clock } = dependencies
  return {
    async register(userId, written, precondition) {
      const url = parseWebhookUrl(written, dependencies)
      if (url === 'invalid') throw new Refusal('webhook_url_invalid')
      if ((await findDestination(url, dependencies)).kind === 'forbidden')
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

/** `host:port`, the same for all URLs of one server. */
function receiverOf(url: URL): string {
  return `${hostOf(url)}:${url.port || '443'}`
}
