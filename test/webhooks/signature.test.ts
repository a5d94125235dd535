// Verifies signatures with the Standard Webhooks library, as receivers do.
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { generateSecret, signDelivery } from '../../src/webhooks/webhook-secret.ts'

const now = () => Math.floor(Date.now() / 1000)

function verify(secret: string, id: string, timestamp: number, signature: string, body: string) {
  const headers = { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature }
  return new Webhook(secret).verify(body, headers)
}

describe('a secret', () => {
  it('consists of whsec_ and 24 random bytes in base64', () => {
    expect(generateSecret(size => Buffer.alloc(size, 0xfb))).toBe(`whsec_${'+/v7'.repeat(8)}`)
    expect(generateSecret(randomBytes)).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/)
    expect(generateSecret(randomBytes)).not.toBe(generateSecret(randomBytes))
  })
})

describe('a signature', () => {
  it('equals the example of the Standard Webhooks specification', () => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    expect(signDelivery(secret, 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, '{"test": 2432232314}')).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    )
  })

  it('is accepted by receivers for any body', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 24, maxLength: 24 }), fc.uuid(), fc.json(), (key, id, body) => {
        const secret = generateSecret(() => Buffer.from(key))
        const timestamp = now()
        const signature = signDelivery(secret, id, timestamp, body)
        expect(verify(secret, id, timestamp, signature, body)).toEqual(JSON.parse(body))
        expect(signature).toBe(new Webhook(secret).sign(id, new Date(timestamp * 1000), body))
      }),
    )
  })

  it('is refused by receivers for another secret, ID, time or body', () => {
    const secret = generateSecret(randomBytes)
    const timestamp = now()
    const signature = signDelivery(secret, 'id', timestamp, '{}')
    expect(() => verify(generateSecret(randomBytes), 'id', timestamp, signature, '{}')).toThrow(
      WebhookVerificationError,
    )
    expect(() => verify(secret, 'other', timestamp, signature, '{}')).toThrow(WebhookVerificationError)
    expect(() => verify(secret, 'id', timestamp - 1, signature, '{}')).toThrow(WebhookVerificationError)
    expect(() => verify(secret, 'id', timestamp, signature, '{ }')).toThrow(WebhookVerificationError)
  })
})
