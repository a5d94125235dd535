// Webhook secrets are stored encrypted with auth.key_secret, or unencrypted without it.
import { describe, expect, it } from 'vitest'
import { createSealer } from '../../src/identity/sealer.ts'
import { createWebhookSecrets } from '../../src/webhooks/webhook-secret.ts'
import { secret } from './delivery/stored.ts'

describe('a webhook secret', () => {
  it('is stored unencrypted without auth.key_secret', () => {
    const secrets = createWebhookSecrets(undefined)
    expect(secrets.seal(secret, 1)).toBe(secret)
    expect(secrets.unseal(secret, 1)).toBe(secret)
  })

  it('is encrypted with auth.key_secret, and readable only for its user', async () => {
    const secrets = createWebhookSecrets(await createSealer('a long and random one'))
    const sealedSecret = secrets.seal(secret, 1)
    expect(sealedSecret).toMatch(/^sealed\./)
    expect(sealedSecret).not.toContain(secret.slice('whsec_'.length))
    expect(secrets.unseal(sealedSecret, 1)).toBe(secret)
    expect(secrets.unseal(sealedSecret, 2)).toBeUndefined()
  })

  it('can still be read if it was stored before auth.key_secret was set', async () => {
    expect(createWebhookSecrets(await createSealer('set later')).unseal(secret, 1)).toBe(secret)
  })

  it('cannot be read with another auth.key_secret or without one', async () => {
    const sealedSecret = createWebhookSecrets(await createSealer('the first')).seal(secret, 1)
    expect(createWebhookSecrets(await createSealer('the second')).unseal(sealedSecret, 1)).toBeUndefined()
    expect(createWebhookSecrets(undefined).unseal(sealedSecret, 1)).toBeUndefined()
  })
})
