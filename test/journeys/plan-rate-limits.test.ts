// Tests the rate limit of a plan: which requests it counts, its responses, and its place in the RateLimit headers.
import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const yaml = (upstream: string) => `plans:
  - { name: starter, rate_limit: 2/1m }
  - { name: team, rate_limit: 3/59500ms }
  - { name: off, rate_limit: 0 }
  - { name: free }
upstreams:
  echo: { targets: ['${upstream}'] }
  few: { targets: ['${upstream}'], connections_per_client: 1 }
  closed: { targets: ['http://127.0.0.1:1'] }
routes:
  - { name: any, path: /any, upstream: echo }
  - { name: optional, path: /optional, upstream: echo, auth: optional }
  - { name: open, path: /open, upstream: echo, auth: none }
  - { name: limited, path: /limited, upstream: echo, rate_limit: 2/1m }
  - { name: paid, path: /paid, upstream: echo, rate_limit: 9/1m, plans: [free] }
  - { name: down, path: /down, upstream: closed }
  - { name: few, path: /few, upstream: few }
`

describeOverSetups('the rate limit of a plan', setup => {
  const at = journey(setup, { limits: '' }, yaml)
  const get = (path: string, token?: string) =>
    call(at.gateway.url, 'GET', path, token === undefined ? {} : { token })
  const setPlan = async (id: number, plan: string) => {
    const { adminToken: token, admin } = at.gateway
    expect(await call(admin, 'PATCH', `/admin/v1/users/${id}`, { token, body: { plan } })).toMatchObject({
      status: 200,
    })
  }
  const userOn = (plan: string) => newUser(at.gateway, plan)
  const policies = async (path: string, token?: string) => {
    const { status, headers } = await get(path, token)
    return [status, headers.get('ratelimit-policy')]
  }
  /** Returns the status and the RateLimit headers as the gateway sends them. `fetch` would join repeated headers. */
  const fieldsOf = (path: string, token: string) =>
    new Promise<unknown[]>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'ratelimit' }
      const sent = request(at.gateway.url + path, { headers }, response => {
        const { rawHeaders, statusCode } = response.resume()
        resolve([
          statusCode,
          ...rawHeaders.flatMap((name, i) =>
            i % 2 === 0 && /^ratelimit/i.test(name) ? [`${name}: ${rawHeaders[i + 1]}`] : [],
          ),
        ])
      })
      sent.on('error', reject).end()
    })

  it('counts the requests of a user on all routes together, except routes without authentication', async () => {
    const user = await userOn('starter')
    for (let i = 0; i < 3; i++) {
      expect(await policies('/open', user.access)).toEqual([200, null])
      expect(await policies('/optional')).toEqual([200, null])
      expect(await policies('/api/v1/auth/usage', user.access)).toEqual([200, null])
    }
    at.upstream.received.length = 0
    const policy = '"plan:starter";q=2;w=60'
    const first = await get('/any', user.access)
    expect([first.status, first.headers.get('ratelimit-policy')]).toEqual([200, policy])
    expect(first.headers.get('ratelimit')).toMatch(/^"plan:starter";r=1;t=(60|5\d)$/)
    expect(await policies('/optional', user.access)).toEqual([200, policy])
    const refused = await get('/any', user.access)
    expectRefusal(refused, 429, 'rate_limited', 'Trop de requêtes')
    const wait = refused.headers.get('retry-after')
    expect(Number(wait)).toBeGreaterThan(50)
    expect(refused.headers.get('ratelimit-policy')).toBe(policy)
    expect(refused.headers.get('ratelimit')).toBe(`"plan:starter";r=0;t=${wait}`)
    expect(at.upstream.received).toHaveLength(2)
    await expect
      .poll(() => at.gateway.log.some(line => line.includes('"reason":"plans.starter.rate_limit"')))
      .toBe(true)
    expect(await policies('/any', (await userOn('starter')).access)).toEqual([200, policy])
  })

  it('counts a request before the limit of the route does, and is first in both RateLimit headers', async () => {
    const plan = '"plan:team";q=3;w=60'
    const route = '"limited";q=2;w=60'
    const user = await userOn('team')
    for (const [status, ofPlan, ofRoute] of [
      [200, 2, 1],
      [200, 1, 0],
      [429, 0, 0],
    ]) {
      expect(await fieldsOf('/limited', user.access)).toEqual([
        status,
        `ratelimit-policy: ${plan}, ${route}`,
        expect.stringMatching(
          new RegExp(`^ratelimit: "plan:team";r=${ofPlan};t=\\d+, "limited";r=${ofRoute};t=\\d+$`),
        ),
      ])
    }
    expect(at.upstream.received).toHaveLength(2)
    expect(await policies('/limited', user.access)).toEqual([429, plan])

    const other = await userOn('starter')
    for (const path of ['/any', '/any', '/limited', '/limited']) await get(path, other.access)
    await setPlan(other.id, 'free')
    const counted = await get('/limited', other.access)
    expect(counted.headers.get('ratelimit-policy')).toBe(route)
    expect(counted.headers.get('ratelimit')).toMatch(/^"limited";r=1;/)
  })

  it('adds its members to the RateLimit headers of later refusals and of upstream responses', async () => {
    const plan = '"plan:team";q=3;w=60'
    const user = await userOn('team')
    expect(await policies('/paid', user.access)).toEqual([403, `${plan}, "paid";q=9;w=60`])
    expect(await fieldsOf('/down', user.access)).toEqual([
      502,
      `ratelimit-policy: ${plan}`,
      expect.stringMatching(/^ratelimit: "plan:team";r=1;t=\d+$/),
    ])
    at.upstream.answer = (_request, response) => response.setHeader('RateLimit', '"theirs";r=7;t=1').end()
    expect((await get('/any', user.access)).headers.get('ratelimit')).toMatch(
      /^"theirs";r=7;t=1, "plan:team";r=0;t=\d+$/,
    )

    const busy = await userOn('team')
    let release = () => {}
    const isWaiting = new Promise<void>(resolve => {
      at.upstream.answer = (_request, response) => {
        release = () => response.end()
        resolve()
      }
    })
    const first = get('/few', busy.access)
    await isWaiting
    expect(await fieldsOf('/few', busy.access)).toEqual([
      429,
      `ratelimit-policy: ${plan}, "connections";q=1;qu="concurrent-requests"`,
      expect.stringMatching(/^ratelimit: "plan:team";r=1;t=\d+, "connections";r=0;t=1$/),
    ])
    release()
    expect((await first).status).toBe(200)
  })

  it('also applies to users whose plan is not configured if it belongs to the first plan; a rate of 0 means no limit', async () => {
    const user = await userOn('gone')
    for (const status of [200, 200, 429])
      expect(await policies('/any', user.access)).toEqual([status, '"plan:starter";q=2;w=60'])
    for (const plan of ['off', 'free']) {
      const unlimited = await userOn(plan)
      for (let i = 0; i < 4; i++) expect(await policies('/any', unlimited.access)).toEqual([200, null])
    }
  })

  it('keeps its counts if a reload changes other settings, and a changed rate applies at once', async () => {
    const user = await userOn('starter')
    expect((await get('/any', user.access)).headers.get('ratelimit')).toContain(';r=1;')
    const text = await readFile(at.gateway.file, 'utf8')
    await writeFile(
      at.gateway.file,
      text.replace('name: any,', 'name: renamed,').replace('3/59500ms', '4/1m'),
    )
    await at.gateway.reload()
    expect(at.gateway.refused).toEqual([])
    expect((await get('/any', user.access)).headers.get('ratelimit')).toContain(';r=0;')
    expect((await get('/any', user.access)).status).toBe(429)
    expect(await policies('/any', (await userOn('team')).access)).toEqual([200, '"plan:team";q=4;w=60'])
  })
})
