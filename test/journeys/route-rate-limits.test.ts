// Tests the rate limit of a route: which requests count together, when it is checked, and its responses.
import { expect, it } from 'vitest'
import { call, giveKey, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { describeOverSetups } from '../support/setups.ts'

const routes = (upstream: string) => `upstreams:
  echo: { targets: ['${upstream}'] }
routes:
  - { name: mine, path: /mine/*, upstream: echo, rate_limit: 3/1m }
  - { name: other, path: /other, upstream: echo, rate_limit: 3/1m }
  - { name: courses, path: /courses, upstream: echo, rate_limit: 2/1h, free_daily: true }
  - { name: pro, path: /pro, upstream: echo, rate_limit: 2/1m, plans: [pro] }
  - { name: open, path: /open, upstream: echo, rate_limit: 2/1m, auth: none }
  - { name: either, path: /either, upstream: echo, rate_limit: 2/1m, auth: optional }
  - { name: off, path: /off, upstream: echo, rate_limit: 0, auth: none }
  - { name: none, path: /none, upstream: echo, auth: none }
`

describeOverSetups('the rate limit of a route', setup => {
  const at = journey(setup, { server: ", trusted_proxies: ['127.0.0.1']" }, routes)
  const get = (path: string, token?: string, headers: Record<string, string> = {}) =>
    call(at.gateway.url, 'GET', path, { headers, ...(token === undefined ? {} : { token }) })
  const from = (path: string, client: string) => get(path, undefined, { 'x-forwarded-for': client })

  it('counts by user, sends RateLimit headers with each response and does not forward excess requests', async () => {
    const user = await newUser(at.gateway)
    for (const left of [2, 1, 0]) {
      const answer = await get('/mine/1', user.access)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('ratelimit-policy')).toBe('"mine";q=3;w=60')
      expect(answer.headers.get('ratelimit')).toMatch(new RegExp(`^"mine";r=${left};t=(60|5\\d)$`))
    }
    const refused = await get('/mine/2', user.access)
    expect([refused.status, refused.body]).toEqual([429, { error: 'Trop de requêtes' }])
    expect(refused.headers.get('x-peage-error')).toBe('rate_limited')
    expect(refused.headers.get('cache-control')).toBe('no-store')
    const wait = refused.headers.get('retry-after')
    expect(Number(wait)).toBeGreaterThan(50)
    expect(refused.headers.get('ratelimit-policy')).toBe('"mine";q=3;w=60')
    expect(refused.headers.get('ratelimit')).toBe(`"mine";r=0;t=${wait}`)
    expect(at.upstream.received).toHaveLength(3)
    expect((await get('/other', user.access)).status).toBe(200)
    expect((await get('/mine/1', (await newUser(at.gateway)).access)).status).toBe(200)
  })

  it('counts the API key and access token of a user as one user, from any address', async () => {
    const user = await newUser(at.gateway)
    await giveKey(at.gateway, user, `peage_${user.id}`)
    for (let i = 0; i < 3; i++) await get('/mine/1', user.access, { 'x-forwarded-for': `192.0.2.${i}` })
    expect((await get('/mine/1', undefined, { 'x-api-key': `peage_${user.id}` })).status).toBe(429)
  })

  it('counts anonymous clients by address (IPv6 clients by /64), separately from users', async () => {
    for (const client of ['198.51.100.1', '2001:db8::1']) {
      expect((await from('/open', client)).status).toBe(200)
      expect((await from('/open', client)).status).toBe(200)
      expect((await from('/open', client)).status).toBe(429)
    }
    expect((await from('/open', '198.51.100.2')).status).toBe(200)
    expect((await from('/open', '2001:db8::2')).status).toBe(429)
    expect((await from('/open', '2001:db8:0:1::1')).status).toBe(200)
    for (const status of [200, 200, 429]) expect((await from('/either', '198.51.100.1')).status).toBe(status)
    const user = await newUser(at.gateway)
    expect((await get('/either', user.access, { 'x-forwarded-for': '198.51.100.1' })).status).toBe(200)
  })

  it('does not count a request with an invalid credential', async () => {
    const client = { 'x-forwarded-for': '198.51.100.9' }
    for (let i = 0; i < 4; i++) {
      const refused = await get('/either', 'bad', client)
      expect([refused.status, refused.headers.get('ratelimit')]).toEqual([401, null])
    }
    expect((await get('/either', undefined, client)).headers.get('ratelimit')).toContain(';r=1;')
  })

  it('is checked before the plan guard, so requests with a wrong plan count too', async () => {
    const user = await newUser(at.gateway)
    for (let i = 0; i < 2; i++) {
      const refused = await get('/pro', user.access)
      expect([refused.status, refused.headers.get('ratelimit-policy')]).toEqual([403, '"pro";q=2;w=60'])
    }
    expect((await get('/pro', user.access)).status).toBe(429)
  })

  it('refuses a request before a daily use is counted; a reached daily limit has its own error code', async () => {
    const spent = await newUser(at.gateway)
    expect((await get('/courses', spent.access)).status).toBe(200)
    const daily = await get('/courses', spent.access)
    expect(daily.headers.get('x-peage-error')).toBe('daily_limit_reached')
    expect(daily.headers.get('ratelimit')).toMatch(/^"courses";r=0;t=\d+$/)
    expect((await get('/courses', spent.access)).headers.get('x-peage-error')).toBe('rate_limited')

    const premium = await newUser(at.gateway, 'premium')
    for (const status of [200, 200, 429]) expect((await get('/courses', premium.access)).status).toBe(status)
    const [row] = await at.gateway.sql<{ daily_usage: number }>(
      'select daily_usage from users where id = $1',
      [spent.id],
    )
    expect(row?.daily_usage).toBe(1)
  })

  it('keeps the RateLimit headers of the upstream and adds its own values', async () => {
    at.upstream.answer = (_request, response) => response.setHeader('RateLimit', '"theirs";r=7;t=1').end()
    const answer = await from('/open', '198.51.100.20')
    expect(answer.headers.get('ratelimit')).toMatch(/^"theirs";r=7;t=1, "open";r=1;t=\d+$/)
  })

  it('limits nothing and sends no headers if it is absent or 0', async () => {
    for (const path of ['/off', '/none']) {
      for (let i = 0; i < 5; i++) {
        const answer = await get(path)
        expect([answer.status, answer.headers.get('ratelimit')]).toEqual([200, null])
      }
    }
  })
})
