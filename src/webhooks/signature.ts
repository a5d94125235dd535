// Secrets and signatures of Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks).
import { createHmac } from 'node:crypto'

const secretPrefix = 'whsec_'

/**
 * `whsec_` and the base64 of 24 random bytes.
 * @param random `randomBytes` of `node:crypto`
 */
export function generateSecret(random: (size: number) => Buffer): string {
  return secretPrefix + random(24).toString('base64')
}

/**
 * One signature of `webhook-signature`, which separates several by spaces; the key is the secret's decoded bytes.
 * @param id the value of `webhook-id`
 * @param timestampSeconds since the epoch, the value of `webhook-timestamp`: an integer
 * @param body exactly as sent
 */
export function signDelivery(secret: string, id: string, timestampSeconds: number, body: string): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestampSeconds}.${body}`).digest('base64')}`
}
