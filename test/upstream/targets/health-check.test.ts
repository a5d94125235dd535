// A target that fails its health checks receives no requests until it passes them again.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { expectRefusal } from '../../security/invariants.ts'
import { ask, requestBytes } from '../../security/raw-client.ts'
import { call, newUser } from '../../support/client.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { type MortalUpstream, startMortal } from '../mortal-upstream.ts'

describe('health checks', () => {
  let one: MortalUpstream
  let two: MortalUpstream
  let gateway: TestGateway
  /** The status code of the response to health checks, by target name. With 0, the target sends no response. */
  const health: Record<string, number> = {}
  let failed = 0

  beforeAll(async () => {
    ;[one, two] = [await startMortal('one'), await startMortal('two')]
    for (const target of [one, two]) {
      target.answer = (request, response) => {
        const status = health[target.name] ?? 200
        if (request.url === '/failing') {
          failed += 1
          response.writeHead(500).end()
        } else if (request.url !== '/health') response.end(target.name)
        else if (status !== 0) response.writeHead(status).end()
      }
    }
    const check =
      'health: { path: /health, interval: 50ms, timeout: 250ms, unhealthy_after: 2, healthy_after: 2 }'
    gateway = await startGateway(`upstreams:
  app: { targets: ['${one.url}', '${two.url}'], ${check} }
  other: { targets: ['${two.url}'], health: { path: /failing, interval: 1h } }
routes:
  - { name: app, path: /app/*, upstream: app, auth: none }
  - { name: counted, path: /counted, upstream: app, free_daily: true }
  - { name: other, path: /other, upstream: other, auth: none }
`)
  })
  beforeEach(async () => {
    for (const name of Object.keys(health)) delete health[name]
    await expect.poll(served).toEqual(['one', 'two'])
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([one?.kill(), two?.kill()])
  })

  const get = () => ask(gateway.url, requestBytes('GET', '/app/x'))
  /** Sends a few requests in a row, and returns the targets that responded. */
  async function served(): Promise<string[]> {
    const names = new Set<string>()
    for (let i = 0; i < 4; i++) names.add(String((await get())?.body))
    return [...names].sort()
  }

  it.each([
    ['a 500', 500],
    ['a 404', 404],
    ['no response in time', 0],
  ])('make a target unhealthy if two in a row get %s, and healthy when they pass', async (_, status) => {
    health.two = status
    await expect.poll(served).toEqual(['one'])
    health.two = 302
    await expect.poll(served).toEqual(['one', 'two'])
  })

  it('make a target unhealthy while they cannot connect, and healthy again when they can', async () => {
    await two.kill()
    await expect.poll(served).toEqual(['one'])
    await two.revive()
    await expect.poll(served).toEqual(['one', 'two'])
  })

  it('cause a 503 if no target is healthy, and the refused request does not count as a use', async () => {
    const user = await newUser(gateway)
    const counted = () => call(gateway.url, 'GET', '/counted', { token: user.access })
    health.one = 503
    health.two = 503
    await expect.poll(async () => (await get())?.status).toBe(503)
    expectRefusal(await get(), 'upstream_unavailable')
    const refused = await counted()
    expect([refused.status, refused.headers.get('x-peage-error')]).toEqual([503, 'upstream_unavailable'])
    expect(
      await gateway.sql('select daily_usage, last_usage_date from users where id = $1', [user.id]),
    ).toEqual([{ daily_usage: 0, last_usage_date: null }])
    // The guards run before a target is chosen, so a request without credentials gets a 401 from the guards.
    expect((await call(gateway.url, 'GET', '/counted')).status).toBe(401)
    health.one = 200
    await expect.poll(async () => (await get())?.status).toBe(200)
    expect((await counted()).status).toBe(200)
    expect((await counted()).status).toBe(429)
  })

  it('do not make a target unhealthy after one failure if three are required', async () => {
    await expect.poll(() => failed).toBe(1)
    expect((await call(gateway.url, 'GET', '/other')).text).toBe('two')
  })

  it('end when the gateway stops', async () => {
    await gateway.stop()
    const { checks } = one
    await new Promise(resolve => setTimeout(resolve, 200))
    expect(one.checks).toBe(checks)
  })
})
