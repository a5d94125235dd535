// Tests each limit of `auth.rate_limits`, and the responses to requests beyond the limit.
import { expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { describeOverSetups } from '../support/setups.ts'

const limits = `rate_limits: { register: 3/1m, login_failures: 4/5m, login_failures_per_address: 6/5m, refresh: 3/1m, bad_keys: 3/1m }`

describeOverSetups('rate limits', setup => {
  const at = journey(setup, { rateLimits: limits, server: ", trusted_proxies: ['127.0.0.1']" })
  /** Sends a request through a trusted proxy for the client address `client`. */
  const post = (path: string, client: string, body: unknown) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, { body, headers: { 'x-forwarded-for': client } })
  const password = 'correct horse battery'

  it('an address beyond the register limit gets 429 with the waiting time; other addresses are not refused', async () => {
    for (let i = 0; i < 3; i++) expect((await post('register', '192.0.2.1', {})).status).toBe(400)
    const refused = await post('register', '192.0.2.1', {})
    expect([refused.status, refused.body]).toEqual([429, { error: 'Trop de requêtes' }])
    expect(refused.headers.get('x-peage-error')).toBe('rate_limited')
    const wait = Number(refused.headers.get('retry-after'))
    expect(wait).toBeGreaterThan(50)
    expect(wait).toBeLessThanOrEqual(60)
    expect(refused.headers.get('ratelimit-policy')).toBe('"register";q=3;w=60')
    expect(refused.headers.get('ratelimit')).toBe(`"register";r=0;t=${wait}`)
    expect((await post('register', '192.0.2.2', {})).status).toBe(400)
    // All IPv6 addresses of one /64 count as one address.
    for (let i = 0; i < 3; i++) await post('register', `2001:db8:1:2::${i}`, {})
    expect((await post('register', '2001:db8:1:2:ffff::9', {})).status).toBe(429)
    expect((await post('register', '2001:db8:1:3::1', {})).status).toBe(400)
  })

  it('only failed logins count, per email and address; parallel guesses cannot exceed the limit', async () => {
    const email = `limited.${process.pid}@example.com`
    await post('register', '192.0.2.10', { email, password })
    const logins = Array.from({ length: 40 }, () => post('login', '192.0.2.10', { email, password }))
    expect((await Promise.all(logins)).map(({ status }) => status)).toEqual(Array(40).fill(200))
    const guesses = await Promise.all(
      Array.from({ length: 12 }, () => post('login', '192.0.2.10', { email, password: 'wrong' })),
    )
    expect(guesses.filter(answer => answer.status === 401)).toHaveLength(4)
    const refused = guesses.filter(answer => answer.status === 429)
    expect(refused).toHaveLength(8)
    expect(refused[0]?.headers.get('ratelimit-policy')).toBe('"login";q=4;w=300')
    expect((await post('login', '192.0.2.11', { email, password })).status).toBe(200)
  })

  it('failed logins from one address count together, even if their emails differ', async () => {
    const statuses: number[] = []
    for (let i = 0; i < 8; i++) {
      statuses.push((await post('login', '192.0.2.20', { email: `nobody${i}@example.com`, password })).status)
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 401, 429, 429])
  })

  it('refreshes and unknown API keys are limited per address', async () => {
    for (let i = 0; i < 3; i++)
      expect((await post('refresh', '192.0.2.30', { refresh_token: 'x' })).status).toBe(401)
    expect((await post('refresh', '192.0.2.30', { refresh_token: 'x' })).status).toBe(429)
    const key = (client: string) =>
      call(at.gateway.url, 'GET', '/any/x', {
        headers: { 'x-api-key': 'unknown', 'x-forwarded-for': client },
      })
    for (let i = 0; i < 3; i++) expect((await key('192.0.2.40')).status).toBe(401)
    expect((await key('192.0.2.40')).status).toBe(429)
    expect((await key('192.0.2.41')).status).toBe(401)
  })
})
