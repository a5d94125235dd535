// Tests that a request with several problems is refused by the first guard that finds one.
import { beforeAll, describe, expect, it } from 'vitest'
import { expectRefusal } from '../../security/invariants.ts'
import { ask, requestBytes } from '../../security/raw-client.ts'
import { newUser, type TestUser } from '../../support/client.ts'
import { gatewayBefore } from '../../support/gateway-before.ts'
import { startUpstream } from '../../support/upstream.ts'

describe('the order of refusals', () => {
  let user: TestUser

  const at = gatewayBefore(
    startUpstream,
    url => `upstreams:
  app: { targets: ['${url}'] }
  down: { targets: ['http://127.0.0.1:1'], circuit_breaker: { failures: 1%, of_at_least: 1, open_for: 1h } }
routes:
  - { name: all, path: /all/*, methods: [POST], upstream: app, plans: [free], free_daily: true, max_body: 1KiB }
  - { name: pro, path: /pro, upstream: app, plans: [pro], verified: true, free_daily: true, max_body: 1KiB }
  - { name: verified, path: /verified, upstream: app, verified: true, free_daily: true, max_body: 1KiB }
  - { name: open, path: /open, upstream: app, auth: none }
  - { name: limited, path: /limited, upstream: app, plans: [pro], rate_limit: 1/1h }
  - { name: down, path: /down, upstream: down, free_daily: true, max_body: 1KiB }
  - { name: open-circuit, path: /open-circuit, upstream: down, auth: none }
`,
  )
  beforeAll(async () => {
    user = await newUser(at.gateway)
  })

  const bearer = () => `Authorization: Bearer ${user.access}`
  const two = ['Authorization: Bearer a', 'Authorization: Bearer b']
  const long = 'Content-Length: 2048'
  const chunks = 'Transfer-Encoding: chunked'

  it.each([
    ['the framing', 'request_invalid', 'GET', '/all/..', [...two, long, chunks]],
    ['Host', 'request_invalid', 'GET', '/all/..', ['Host: a b', ...two, long]],
    ['the path rules', 'path_invalid', 'GET', '/nothing/..', [...two, long]],
    ['the route’s path', 'route_unknown', 'GET', '/nothing', [...two, long]],
    ['the route’s method', 'method_not_allowed', 'GET', '/all/x', [...two, long]],
    ['ambiguous credentials', 'credentials_ambiguous', 'POST', '/all/x', [...two, long]],
    [
      'ambiguous credentials on a public route',
      'credentials_ambiguous',
      'POST',
      '/open',
      ['X-API-Key: a', 'X-API-Key: a'],
    ],
    ['authentication', 'token_invalid', 'POST', '/all/x', [long]],
    ['the plan', 'plan_insufficient', 'POST', '/pro', ['credential', long]],
    ['the verified email', 'email_unverified', 'POST', '/verified', ['credential', long]],
    ['the declared length', 'body_too_large', 'POST', '/all/x', ['credential', long]],
  ])(
    'the check of %s refuses the request with %s, although later checks would refuse it too',
    async (_, code, method, target, lines) => {
      const sent = lines.map(line => (line === 'credential' ? bearer() : line))
      expectRefusal(await ask(at.gateway.url, requestBytes(method, target, sent)), code)
    },
  )

  it('authentication is checked before the rate limit, and the rate limit before the plan', async () => {
    const limited = (credential: string) => ask(at.gateway.url, requestBytes('GET', '/limited', [credential]))
    for (let i = 0; i < 2; i += 1) expectRefusal(await limited('X-API-Key: a'), 'token_invalid')
    expectRefusal(await limited(bearer()), 'plan_insufficient')
    expectRefusal(await limited(bearer()), 'rate_limited')
  })

  it('the declared body length is checked before the target, and the target before the daily use', async () => {
    expectRefusal(await ask(at.gateway.url, requestBytes('GET', '/open-circuit')), 'upstream_unreachable')
    const down = (lines: string[]) => ask(at.gateway.url, requestBytes('GET', '/down', [bearer(), ...lines]))
    expectRefusal(await down([long]), 'body_too_large')
    expectRefusal(await down([]), 'upstream_unavailable')
  })

  it('the daily use is counted last, so that refused requests are not counted', async () => {
    const counted = () =>
      at.gateway.sql<{ daily_usage: number }>('select daily_usage from users where id = $1', [user.id])
    expect(await counted()).toEqual([{ daily_usage: 0 }])
    expect(at.upstream.received).toEqual([])
    const use = () =>
      ask(at.gateway.url, requestBytes('POST', '/all/x', [bearer(), 'Content-Length: 1'], 'x'))
    expect((await use())?.status).toBe(200)
    expectRefusal(await use(), 'daily_limit_reached')
    expect(await counted()).toEqual([{ daily_usage: 1 }])
  })

  it('if a request is refused with 413 while its body is streamed, it still counts as a daily use', async () => {
    const other = await newUser(at.gateway)
    const asOther = (lines: string[], body: string) =>
      ask(
        at.gateway.url,
        requestBytes('POST', '/all/x', [`Authorization: Bearer ${other.access}`, ...lines], body),
      )
    expectRefusal(await asOther([chunks], `800\r\n${'x'.repeat(2048)}\r\n0\r\n\r\n`), 'body_too_large')
    expectRefusal(await asOther(['Content-Length: 0'], ''), 'daily_limit_reached')
  })
})
