// Webhooks' secrets as they are kept, with and without auth.key_secret.
import { describe, expect, it } from 'vitest'
import { createSealer } from '../../src/identity/sealer.ts'
import { createSecrets } from '../../src/webhooks/webhook-secret.ts'
import { secret } from './delivery/stored.ts'

describe('a webhook’s secret', () => {
  it('stands as it is without auth.key_secret', () => {
    const secrets = createSecrets(undefined)
    expect(secrets.keep(secret, 1)).toBe(secret)
    expect(secrets.read(secret, 1)).toBe(secret)
  })

  it('is sealed under it, for its user alone', async () => {
    const secrets = createSecrets(await createSealer('a long and random one'))
    const kept = secrets.keep(secret, 1)
    expect(kept).toMatch(/^sealed\./)
    expect(kept).not.toContain(secret.slice('whsec_'.length))
    expect(secrets.read(kept, 1)).toBe(secret)
    expect(secrets.read(kept, 2)).toBeUndefined()
  })

  it('that was stored before it was set is still read', async () => {
    expect(createSecrets(await createSealer('set later')).read(secret, 1)).toBe(secret)
  })

  it('cannot be read under another, nor without any', async () => {
    const kept = createSecrets(await createSealer('the first')).keep(secret, 1)
    expect(createSecrets(await createSealer('the second')).read(kept, 1)).toBeUndefined()
    expect(createSecrets(undefined).read(kept, 1)).toBeUndefined()
  })
})
