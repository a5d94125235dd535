// The gateway warns once about a load balancer that is not a trusted proxy, and counts its requests.
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { scrape } from '../support/scrape.ts'
import { embeddedSetup } from '../support/setups.ts'

describe('an untrusted forwarder', () => {
  const at = journey(embeddedSetup)

  it('is logged once, and each of its requests is counted; X-Forwarded-For is ignored', async () => {
    for (const client of ['192.0.2.1', '192.0.2.2']) {
      await call(at.gateway.url, 'GET', '/x', { headers: { 'x-forwarded-for': client } })
    }
    const lines = at.gateway.log.map(line => JSON.parse(line))
    const warnings = lines.filter(line => line.level === 40 && line.peer !== undefined)
    expect(warnings).toEqual([expect.objectContaining({ peer: '127.0.0.1' })])
    expect(warnings[0].msg).toContain('server.trusted_proxies')
    expect(lines.filter(line => line.msg === 'request').map(line => line.client)).toEqual([
      '127.0.0.1',
      '127.0.0.1',
    ])
    await call(at.gateway.url, 'GET', '/x')
    const { value } = await scrape(at.gateway.admin)
    expect(value('peage_untrusted_forwarder_requests_total')).toBe(2)
  })

  it.each(['websocket', 'h2c'])(
    'is counted once for a request that has an Upgrade header for %s',
    async protocol => {
      const counted = async () =>
        (await scrape(at.gateway.admin)).value('peage_untrusted_forwarder_requests_total') as number
      const before = await counted()
      const headers = { connection: 'Upgrade', upgrade: protocol, 'x-forwarded-for': '192.0.2.3' }
      const [response] = await once(
        request(`${at.gateway.url}/x`, { headers, agent: false }).end(),
        'response',
      )
      response.resume()
      expect(response.statusCode).toBe(404)
      expect(await counted()).toBe(before + 1)
    },
  )
})
