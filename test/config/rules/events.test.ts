// The `events` section: what it is where little is written, and what it must have.
import { describe, expect, it } from 'vitest'
import { configOf, linesOf } from '../reading.ts'

const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
const withUrl = (url: string) => `events: { url: ${JSON.stringify(url)}, secret: "${secret}" }`

describe('events', () => {
  it('are all of the contract where no types are written', () => {
    expect(configOf(withUrl('https://billing.internal/events')).events).toEqual({
      url: 'https://billing.internal/events',
      secret,
      types: [
        'user.created',
        'user.email_changed',
        'user.email_verified',
        'user.plan_changed',
        'user.deactivated',
        'user.activated',
        'user.deleted',
      ],
    })
  })

  it('are none without a url, whatever else is there', () => {
    for (const text of ['events: {}', `events: { url: "\${URL:-}", secret: "${secret}" }`])
      expect(configOf(text)).not.toHaveProperty('events')
  })

  it('may go to private networks, in clear too, with any port, path and query', () => {
    for (const url of [
      'http://10.0.0.7',
      'HTTP://billing:8080/a?b=c',
      'https://[::1]/',
      'http://localhost/x',
    ])
      expect(configOf(withUrl(url)).events?.url).toBe(url)
  })

  const noUrl = 'must be an http:// or https:// address such as https://billing.internal/events'
  it.each([
    ['billing.internal/events', noUrl],
    ['ftp://billing', noUrl],
    ['http:/billing', noUrl],
    ['http://', noUrl],
    ['https://bil ling', noUrl],
    ['https://billing/é', noUrl],
    ['https://billing:99999', noUrl],
    ['https://a:b@billing', 'must not have user info (user:password@)'],
    ['https://billing/#x', 'must not have a fragment'],
    ['https://billing:0/', 'must not have port 0'],
  ])('cannot go to %j', (url, message) => {
    expect(linesOf(withUrl(url))).toEqual([`1:16  events.url  ${message}`])
  })

  it('are signed: a secret is needed with a url', () => {
    const message = 'needs a secret to sign with: secret: whsec_ and base64'
    expect(linesOf('events: { url: "https://a" }')).toEqual([`1:9  events  ${message}`])
    expect(linesOf('events: { url: "https://a", secret: "${S:-}" }')).toEqual([
      `1:37  events.secret  ${message}`,
    ])
  })

  const noSecret = 'must be whsec_ and base64, such as the output of: echo whsec_$(openssl rand -base64 32)'
  const length = 'must have 24 to 64 bytes of base64 after whsec_'
  it.each([
    ['hunter2-hunter2-hunter2', noSecret],
    ['whsec_', noSecret],
    [of(24).replace('whsec_', ''), noSecret],
    [`${of(24)}=`, noSecret],
    [`${of(24)} `, noSecret],
    [of(25).replace('=', ''), noSecret],
    [of(24).replaceAll('B', '-'), noSecret],
    [of(23), length],
    [of(65), length],
  ])('have a secret that is one, not %j, and no fault repeats it', (text, message) => {
    const [line = ''] = linesOf(`events: { url: "https://a", secret: "${text}" }`)
    expect(line).toBe(`1:37  events.secret  ${message}`)
  })

  it('have a secret of 24 to 64 bytes, also from the environment', () => {
    for (const S of [of(24), of(32), of(64)])
      expect(configOf('events: { url: "https://a", secret: "${S}" }', { S }).events?.secret).toBe(S)
  })

  it('have types that there are, at least one', () => {
    const typed = (types: string) =>
      linesOf(`events: { url: "https://a", secret: "${secret}", types: ${types} }`)
    expect(typed('[user.created, user.deleted]')).toEqual([])
    expect(typed('[]')).toEqual([expect.stringContaining('events.types  ')])
    expect(typed('[user.password_changed]')).toEqual([expect.stringContaining('events.types[0]  ')])
  })
})
