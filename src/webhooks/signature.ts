// Standard Webhooks' secrets and signatures (https://github.com/standard-webhooks/standard-webhooks).
import { createHmac } from 'node:crypto'

const prefix = 'whsec_'

/**
 * `whsec_` and the base64 of 24 random bytes.
 * @param random `randomBytes` of `node:crypto`
 */
export function makeSecret(random: (size: number) => Buffer): string {
  return prefix + random(24).toString('base64')
}

/**
 * One signature of `webhook-signature`, which holds several apart by spaces; the key is the secret's decoded bytes.
 * @param id the value of `webhook-id`
 * @param timestamp seconds since the epoch, the value of `webhook-timestamp`: a whole number
 * @param body exactly as it is sent
 */
export function sign(secret: string, id: string, timestamp: number, body: string): string {
  const key = Buffer.from(secret.slice(prefix.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
}
