// Tests the script in docs/webhooks-and-events.md that verifies the signature of a webhook.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signDelivery } from '../../src/webhooks/webhook-secret.ts'

type IsGenuine = (headers: Record<string, string>, body: string | Buffer, secret: string) => boolean

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const body = '{"type":"course.done","timestamp":"2026-02-03T04:05:06.000Z","data":{"title":"Émigré"}}'

let folder: string
let isGenuine: IsGenuine

beforeAll(async () => {
  const page = await readFile(new URL('../../docs/webhooks-and-events.md', import.meta.url), 'utf8')
  const scripts = [...page.matchAll(/```js[^\n]*\n([\s\S]*?)```/g)].map(([, script]) => script ?? '')
  folder = await mkdtemp(join(tmpdir(), 'peage-script-'))
  const file = join(folder, 'verify.mjs')
  await writeFile(file, scripts.find(script => script.includes('isGenuine')) ?? '')
  isGenuine = ((await import(pathToFileURL(file).href)) as { isGenuine: IsGenuine }).isGenuine
})
afterAll(() => rm(folder, { recursive: true }))

function signed(at = Date.now()): Record<string, string> {
  const timestamp = Math.floor(at / 1000)
  return {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signDelivery(secret, 'msg_1', timestamp, body),
  }
}

describe('the script that verifies a webhook', () => {
  it('accepts a signature of the gateway, which the package standardwebhooks accepts too', () => {
    expect(isGenuine(signed(), body, secret)).toBe(true)
    expect(isGenuine(signed(), Buffer.from(body), secret)).toBe(true)
    expect(new Webhook(secret).verify(body, signed())).toEqual(JSON.parse(body))
  })

  it('accepts a valid signature in a list with other signatures', () => {
    const headers = signed()
    headers['webhook-signature'] = `v1a,xyz v1,AAAA ${headers['webhook-signature']} v2,b`
    expect(isGenuine(headers, body, secret)).toBe(true)
  })

  it.each<[string, Partial<Record<string, string>>]>([
    ['another id', { 'webhook-id': 'msg_2' }],
    ['another time', { 'webhook-timestamp': String(Math.floor(Date.now() / 1000) - 7) }],
    ['an invalid time', { 'webhook-timestamp': 'now' }],
    ['no time', { 'webhook-timestamp': undefined }],
    ['no signature', { 'webhook-signature': undefined }],
    ['an empty signature', { 'webhook-signature': '' }],
    ['a wrong signature', { 'webhook-signature': `v1,${'A'.repeat(43)}=` }],
    ['a signature with characters outside ASCII', { 'webhook-signature': '\u00e9'.repeat(47) }],
  ])('refuses %s', (_, changed) => {
    expect(isGenuine({ ...signed(), ...changed } as Record<string, string>, body, secret)).toBe(false)
  })

  it('refuses a changed body, a wrong secret, and a time that is more than five minutes in the past or future', () => {
    expect(isGenuine(signed(), `${body} `, secret)).toBe(false)
    expect(isGenuine(signed(), body, 'whsec_AAAA')).toBe(false)
    expect(isGenuine(signed(Date.now() - 302_000), body, secret)).toBe(false)
    expect(isGenuine(signed(Date.now() + 302_000), body, secret)).toBe(false)
    expect(isGenuine(signed(Date.now() - 290_000), body, secret)).toBe(true)
  })
})
