// Routes with `verified: true` admit only users with a verified email. If an email is verified, or is no longer
// verified, this takes effect at once.
import { expect, it } from 'vitest'
import { call, giveKey, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { describeOverSetups } from '../support/setups.ts'

describeOverSetups('a route with `verified`', setup => {
  const at = journey(
    setup,
    {},
    upstream => `upstreams: { app: { targets: ['${upstream}'] } }
routes:
  - { path: /all, upstream: app }
  - { path: /verified, upstream: app, verified: true, free_daily: true }
  - { path: /maybe, upstream: app, auth: optional, verified: true }
  - { path: /pro, upstream: app, plans: [pro], verified: true }
`,
  )

  const get = async (path: string, token?: string, headers: Record<string, string> = {}) => {
    const { status, body } = await call(at.gateway.url, 'GET', path, { headers, ...(token ? { token } : {}) })
    return status === 200 ? 200 : [status, body]
  }
  const unverified = [403, { error: 'E-mail non vérifié' }]
  const patch = (id: number, change: object) =>
    call(at.gateway.admin, 'PATCH', `/admin/v1/users/${id}`, { token: at.gateway.adminToken, body: change })

  it('refuses an unverified user with a token or an API key, and the refusal does not count as a daily use', async () => {
    const user = await newUser(at.gateway)
    expect(await get('/all', user.access)).toBe(200)
    expect(await get('/verified', user.access)).toEqual(unverified)
    await giveKey(at.gateway, user, 'peage_a_key_of_a_user')
    expect(await get('/verified', undefined, { 'x-api-key': 'peage_a_key_of_a_user' })).toEqual(unverified)
    expect(await at.gateway.sql('select daily_usage from users where id = $1', [user.id])).toEqual([
      { daily_usage: 0 },
    ])
  })

  it('checks the plan before the email, and refuses anonymous clients with 401, as the plan guard does', async () => {
    const user = await newUser(at.gateway)
    expect(await get('/pro', user.access)).toMatchObject([403, { error: 'Plan insuffisant' }])
    expect(await get('/maybe')).toEqual([401, { error: 'Non authentifié' }])
    const { headers } = await call(at.gateway.url, 'GET', '/maybe')
    expect(headers.get('www-authenticate')).toBe('Bearer')
  })

  it('admits a user right after verification, and refuses a user who is no longer verified', async () => {
    const user = await newUser(at.gateway)
    expect(await get('/verified', user.access)).toEqual(unverified)
    const { status, body } = await patch(user.id, { email_verified: true })
    expect([status, typeof body.email_verified_at]).toEqual([200, 'string'])
    expect(await get('/verified', user.access)).toBe(200)
    const again = await patch(user.id, { email_verified: true })
    expect(again.body.email_verified_at).toBe(body.email_verified_at)
    expect((await patch(user.id, { email_verified: false })).body).toMatchObject({ email_verified_at: null })
    expect(await get('/verified', user.access)).toEqual(unverified)
    expect((await patch(user.id, { email_verified: 1 })).status).toBe(400)
  })

  it('ends the event stream of a user who is no longer verified', async () => {
    const user = await newUser(at.gateway)
    await patch(user.id, { email_verified: true })
    at.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
    }
    try {
      const stream = await fetch(`${at.gateway.url}/maybe`, {
        headers: { authorization: `Bearer ${user.access}` },
      })
      await patch(user.id, { email_verified: false })
      expect(await stream.text()).toBe('data: 1\n\n')
    } finally {
      at.upstream.answer = undefined
    }
  })

  it('admits a user soon after another program has marked the email as verified with SQL', async () => {
    const user = await newUser(at.gateway)
    expect(await get('/verified', user.access)).toEqual(unverified)
    await at.gateway.sql('update users set email_verified_at = now() where id = $1', [user.id])
    await expect.poll(() => get('/maybe', user.access)).toBe(200)
  })
})
