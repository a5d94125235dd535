// Generates the secret of a webhook and signs with it, according to Standard Webhooks. Encrypts the secret if
// `auth.key_secret` is set. https://github.com/standard-webhooks/standard-webhooks
import { createHmac } from 'node:crypto'
import type { Column } from '../identity/sealed-column-store.ts'
import { isSealed, type Sealer } from '../identity/sealer.ts'

export interface WebhookSecrets {
  seal(secret: string, userId: number): string
  /** Returns the secret for signing; undefined if it was encrypted with another `auth.key_secret`. */
  unseal(stored: string, userId: number): string | undefined
}

/** @param sealer undefined if `auth.key_secret` is not set */
export function createWebhookSecrets(sealer: Sealer | undefined): WebhookSecrets {
  return {
    seal: (secret, userId) => sealer?.seal(secret, contextOf(userId)) ?? secret,
    unseal: (stored, userId) => (isSealed(stored) ? sealer?.open(stored, contextOf(userId)) : stored),
  }
}

/** The columns that contain secrets. `peage keys reseal` encrypts their values again. */
export const secretColumns: readonly Column[] = ['secret', 'secret_before'].map(column => ({
  table: 'webhooks',
  key: 'user_id',
  type: 'bigint',
  column,
  context: contextOf,
}))

function contextOf(userId: number | string): string {
  return `webhook of ${userId}`
}

const secretPrefix = 'whsec_'

/** Returns `whsec_` and the base64 of 24 random bytes. @param random `randomBytes` of `node:crypto` */
export function generateSecret(random: (size: number) => Buffer): string {
  return secretPrefix + random(24).toString('base64')
}

/**
 * Returns one signature for the header `webhook-signature`. In this header, several signatures are separated by spaces.
 * The key of the signature is the decoded base64 of the secret.
 * @param id the value of `webhook-id`
 * @param timestampSeconds seconds since the epoch, the value of `webhook-timestamp`; an integer
 * @param body exactly as sent
 */
export function signDelivery(secret: string, id: string, timestampSeconds: number, body: string): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestampSeconds}.${body}`).digest('base64')}`
}

/**
 * Returns the headers of Standard Webhooks.
 * @param id the same for every attempt of a message
 * @param signingSecrets the secrets; each adds one signature, in this order
 */
export function webhookHeaders(
  id: string,
  body: string,
  signingSecrets: readonly string[],
  timestampSeconds: number,
) {
  return {
    'content-type': 'application/json',
    'user-agent': 'peage',
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signingSecrets
      .map(secret => signDelivery(secret, id, timestampSeconds, body))
      .join(' '),
  }
}
