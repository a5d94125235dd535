// A running gateway sends events about users to the service of events.url.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { journey, routes } from '../support/journey.ts'
import { describeOverSetups } from '../support/setups.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const otherSecret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'

interface Told {
  type: string
  timestamp: string
  data: Record<string, unknown>
}

describeOverSetups('the service of events.url', setup => {
  let service: Server
  let url: string
  /** The events that the service received. Their signatures were verified with the current secret. */
  const told: Told[] = []
  let key = secret
  beforeAll(async () => {
    service = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const headers = request.headers as Record<string, string>
      told.push(new Webhook(key).verify(Buffer.concat(chunks).toString(), headers) as Told)
      response.writeHead(204).end()
    })
    await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(service.address() as AddressInfo).port}/events`
  })
  const at = journey(
    setup,
    {},
    upstream =>
      `${routes(upstream)}\nevents: { url: '${url}', secret: '${secret}' }\naccount: { deletion: true }\n`,
  )
  beforeEach(() => {
    told.length = 0
  })
  afterAll(() => {
    service.close()
  })

  let made = 0
  async function register(): Promise<{ id: number; email: string }> {
    made += 1
    const email = `told${made}@example.com`
    const body = { email, password: 'correct horse battery' }
    const answer = await call(at.gateway.url, 'POST', '/api/v1/auth/register', { body })
    expect(answer.status).toBe(201)
    return { id: Number(answer.body.user_id), email }
  }
  const patch = async (id: number, body: object) => {
    const path = `/admin/v1/users/${id}`
    const { status } = await call(at.gateway.admin, 'PATCH', path, { body, token: at.gateway.adminToken })
    expect(status).toBe(200)
  }
  const typesOf = () => told.map(({ type }) => type)
  /** Waits until all stored events have been delivered. */
  const settle = () =>
    expect.poll(() => at.gateway.sql(`select type from events where status = 'pending'`)).toEqual([])

  it('receives the events of a registration and of changes by operators in order; each event shows the user after the change', async () => {
    const { id, email } = await register()
    await patch(id, { plan: 'pro' })
    await patch(id, { is_active: 0, plan: 'premium' })
    await patch(id, { is_active: 1, email_verified: true })
    await settle()
    const data = { user_id: id, email, plan: 'premium', is_active: 1 }
    const timestamp = new Date(at.gateway.clock.at).toISOString()
    expect(told).toEqual([
      { type: 'user.created', timestamp, data: { ...data, plan: 'free' } },
      { type: 'user.plan_changed', timestamp, data: { ...data, plan: 'pro' } },
      { type: 'user.plan_changed', timestamp, data: { ...data, is_active: 0 } },
      { type: 'user.deactivated', timestamp, data: { ...data, is_active: 0 } },
      { type: 'user.email_verified', timestamp, data },
      { type: 'user.activated', timestamp, data },
    ])
  })

  it('receives an event when an operator creates a user, changes the email of a user or deletes a user', async () => {
    const ask = async (method: string, path: string, body?: object) => {
      const answer = await call(at.gateway.admin, method, `/admin/v1/users${path}`, {
        body,
        token: at.gateway.adminToken,
      })
      expect(answer.status).toBeLessThan(300)
      return answer.body
    }
    const { id } = await ask('POST', '', { email: 'made@example.com', plan: 'pro' })
    await ask('PATCH', `/${id}`, { email: 'moved@example.com', is_active: 0 })
    await ask('DELETE', `/${id}`)
    await settle()
    const data = { user_id: id, email: 'moved@example.com', plan: 'pro', is_active: 0 }
    expect(told.map(({ type, data }) => ({ type, data }))).toEqual([
      { type: 'user.created', data: { ...data, email: 'made@example.com', is_active: 1 } },
      { type: 'user.email_changed', data: { ...data, previous_email: 'made@example.com' } },
      { type: 'user.deactivated', data },
      { type: 'user.deleted', data },
    ])
    expect(await at.gateway.sql('select 1 from events where user_id = $1', [id])).toEqual([])
  })

  it('receives the events about a user, but the user’s own webhook does not receive them', async () => {
    const user = await newUser(at.gateway, 'pro')
    const hook = { token: user.access, body: { url: 'https://nobody.invalid/hook' } }
    expect((await call(at.gateway.url, 'POST', '/api/v1/user/webhook', hook)).status).toBe(201)
    await patch(user.id, { email_verified: true, plan: 'premium' })
    await settle()
    expect(typesOf()).toEqual(['user.email_verified', 'user.plan_changed'])
    expect(await at.gateway.sql('select from webhook_deliveries where user_id = $1', [user.id])).toEqual([])
  })

  it('receives nothing for unchanged values, refused calls, logins or changes by other programs', async () => {
    const { id, email } = await register()
    await settle()
    told.length = 0
    await patch(id, { plan: 'free', is_active: 1, email_verified: false })
    const body = { email, password: 'correct horse battery' }
    expect((await call(at.gateway.url, 'POST', '/api/v1/auth/register', { body })).status).toBe(409)
    expect((await call(at.gateway.url, 'POST', '/api/v1/auth/login', { body })).status).toBe(200)
    await at.gateway.sql(`update users set plan = 'pro', is_active = 0 where id = $1`, [id])
    expect(await at.gateway.sql('select type from events where user_id = $1', [id])).toEqual([
      { type: 'user.created' },
    ])
    await at.gateway.sql('delete from users where id = $1', [id])
    expect(await at.gateway.sql('select type from events where user_id = $1', [id])).toEqual([])
    expect(told).toEqual([])
  })

  it('after a reload, receives events according to the new types, URL and secret', async () => {
    const save = (events: string) => at.gateway.configure([/^(events:|# no events).*$/m, events])
    key = otherSecret
    await save(`events: { url: '${url}?moved', secret: '${otherSecret}', types: [user.plan_changed] }`)
    const { id } = await register()
    await patch(id, { plan: 'pro', is_active: 0 })
    await settle()
    expect(typesOf()).toEqual(['user.plan_changed'])
    await save('# no events')
    await patch(id, { plan: 'premium' })
    await save(`events: { url: '${url}', secret: '${otherSecret}' }`)
    await patch(id, { is_active: 1 })
    await settle()
    expect(typesOf()).toEqual(['user.plan_changed', 'user.activated'])
  })

  it('has a metric that counts its delivered events, and its secret is never logged', async () => {
    const { text } = await call(at.gateway.admin, 'GET', '/metrics')
    const [, delivered] = /^peage_events_total\{outcome="delivered"\} (\d+)$/m.exec(text) ?? []
    expect(Number(delivered)).toBeGreaterThanOrEqual(9)
    expect(at.gateway.log.join('')).not.toMatch(/whsec_/)
  })
})
