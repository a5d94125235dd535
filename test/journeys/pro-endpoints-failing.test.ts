// CONTRACT §4, "Storage down", at the endpoints of §5 and at those of §7 for alerts.
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { type Answer, call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { expectRefusal } from '../support/refusals.ts'
import { type Server, startPostgres } from '../support/servers.ts'
import { describeWithPostgresBinary } from '../support/services.ts'

const own = [
  ['POST', '/api/v1/user/api-token'],
  ['DELETE', '/api/v1/user/api-token'],
  ['POST', '/api/v1/user/webhook'],
  ['DELETE', '/api/v1/user/webhook'],
  ['GET', '/api/v1/subscription/upgrade'],
  ['POST', '/api/v1/subscription/upgrade'],
] as const

describeWithPostgresBinary('the endpoints for pro users, while Postgres is away', () => {
  let postgres: Server
  let gateway: TestGateway
  let user: TestUser
  beforeAll(async () => {
    postgres = await startPostgres(inject('postgresBin'))
    gateway = await startGateway('', { postgres: postgres.url, redis: '' })
    user = await newUser(gateway, 'pro')
    await giveKey(gateway, user, 'peage_while_away')
  })
  afterAll(async () => {
    await gateway?.stop()
    await postgres?.stop()
  })

  const body = { url: 'https://8.8.8.8/hook' }
  async function inTime(work: Promise<Answer>): Promise<Answer> {
    const begun = performance.now()
    const answer = await work
    expect(performance.now() - begun).toBeLessThan(2_000)
    expect(answer.headers.get('retry-after')).toBe('1')
    return answer
  }

  it.each(['stopped', 'hanging'])('%s: 503 to a token and 401 to a key, within 2 s', async how => {
    if (how === 'stopped') await postgres.kill()
    else postgres.pause()
    try {
      await Promise.all(
        own.flatMap(([method, path]) => {
          const content = method === 'POST' ? { body } : {}
          const byToken = inTime(call(gateway.url, method, path, { token: user.access, ...content }))
          const headers = { 'x-api-key': 'peage_while_away' }
          const byKey = inTime(call(gateway.url, method, path, { headers, ...content }))
          return [
            byToken.then(answer => expectRefusal(answer, 503, 'service_unavailable', 'Service indisponible')),
            byKey.then(answer => expectRefusal(answer, 401, 'key_check_failed', 'Token invalide ou expiré')),
          ]
        }),
      )
      const token = gateway.adminToken
      const admin = [
        call(gateway.admin, 'POST', '/admin/v1/alerts', { token, body: { type: 'x' } }),
        call(gateway.admin, 'GET', '/admin/v1/deliveries', { token }),
      ]
      for (const answer of await Promise.all(admin.map(inTime))) {
        expectRefusal(answer, 503, 'service_unavailable', 'Service indisponible')
      }
    } finally {
      if (how === 'stopped') await postgres.restart()
      else postgres.resume()
    }
    await expect
      .poll(
        () =>
          call(gateway.url, 'POST', '/api/v1/user/webhook', { token: user.access, body }).then(
            ({ status }) => status,
          ),
        { timeout: 10_000 },
      )
      .toBe(201)
  })
})
