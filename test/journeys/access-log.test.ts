// The request log: one whole JSON line a request, whatever the request holds.
import { describe, expect, it } from 'vitest'
import { toFixed3 } from '../../src/proxy/access-log.ts'
import { ask, requestBytes } from '../security/raw-client.ts'
import { newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { alone } from '../support/setups.ts'

describe('the request log', () => {
  const at = journey(
    alone,
    {},
    upstream => `upstreams:
  app: { targets: ['${upstream}'] }
routes:
  - { name: public, path: /public/*, upstream: app, auth: none }
  - { name: mine, path: /mine/*, upstream: app }
`,
  )

  async function lineOf(target: string, lines: string[] = []): Promise<Record<string, unknown>> {
    at.gateway.log.length = 0
    await ask(at.gateway.url, requestBytes('GET', target, lines), 'GET')
    await expect.poll(() => at.gateway.log.at(-1)).toContain('"msg":"request"')
    return JSON.parse(at.gateway.log.at(-1) as string)
  }

  it('tells what was asked and decided', async () => {
    const line = await lineOf('/public/a?secret=1', ['X-Request-Id: an-id'])
    const { time, duration_ms, bytes_sent, upstream_duration_ms, ...rest } = line
    expect(rest).toEqual({
      level: 30,
      request_id: 'an-id',
      route: 'public',
      decision: 'forwarded',
      outcome: 'complete',
      method: 'GET',
      path: '/public/a',
      status: 200,
      client: '127.0.0.1',
      host: 'gw.test',
      upstream_target: at.upstream.url,
      msg: 'request',
    })
    expect(duration_ms).toBeGreaterThan(0)
    expect(upstream_duration_ms).toBeGreaterThan(0)
    expect(upstream_duration_ms).toBeLessThanOrEqual(Number(duration_ms))
    expect(bytes_sent).toBeGreaterThan(100)
    expect(String(time)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(Math.abs(Date.parse(String(time)) - Date.now())).toBeLessThan(5_000)
  })

  it.each([
    [0, '0.000'],
    [0.0004, '0.000'],
    [0.0307, '0.031'],
    [12.05, '12.050'],
    [999.9996, '1000.000'],
    [3_600_000.123, '3600000.123'],
  ])('writes %f milliseconds as %s', (duration, text) => expect(toFixed3(duration)).toBe(text))

  it('names the user and a refusal, and no user where there is none', async () => {
    const user = await newUser(at.gateway)
    const admitted = await lineOf('/mine/a', [`Authorization: Bearer ${user.access}`])
    const refused = await lineOf('/mine/a')
    expect([admitted.user_id, admitted.decision, admitted.route]).toEqual([user.id, 'forwarded', 'mine'])
    expect([refused.user_id, refused.decision, refused.status]).toEqual([undefined, 'token_invalid', 401])
  })

  it.each(['/public/"', '/nowhere/"},{"level":60', '/public/\\'])(
    'stays one line of JSON for the target %j',
    async target => {
      const { path, msg } = await lineOf(target)
      expect([path, msg]).toEqual([target, 'request'])
      expect(at.gateway.log.filter(line => line.trimEnd().includes('\n'))).toEqual([])
    },
  )
})
