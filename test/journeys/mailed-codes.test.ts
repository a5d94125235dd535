// Codes of mails beside other settings: `auth.key_secret`, `auth.logout_ends_access`; and what the time of a try tells.
import { describe, expect, it } from 'vitest'
import { call, login, newUser } from '../support/client.ts'
import { journey, routes } from '../support/journey.ts'
import { codeTo, mailSection, otherCode } from '../support/mailed.ts'
import { describeOverSetups } from '../support/setups.ts'

const keySecret = 'a-secret-of-our-own-0123'
const eventSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const newPassword = 'un nouveau mot de passe'

describeOverSetups('mailed codes', setup => {
  const at = journey(
    setup,
    { auth: `, key_secret: ${keySecret}, logout_ends_access: true` },
    upstream =>
      `${routes(upstream)}${mailSection()}events: { url: 'http://127.0.0.1:1/', secret: '${eventSecret}' }\n`,
  )
  const post = (path: string, body: unknown, token?: string) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, { body, ...(token === undefined ? {} : { token }) })
  const isGood = async (token: string) =>
    (await call(at.gateway.url, 'GET', '/any/1', { token })).status === 200

  it('under key_secret are derived from that: what the database has makes none', async () => {
    const { email } = await newUser(at.gateway)
    await post('password/forgot', { email })
    expect(await at.gateway.sql('select from account_code_key')).toEqual([])
    // Whoever reads the database may also have read this, of a time before key_secret was set.
    const read = await codeTo(at.gateway, email)
    const right = await codeTo(at.gateway, email, keySecret)
    for (const presented of [{ token: read.token }, { email, code: read.code }])
      expect((await post('password/reset', { ...presented, new_password: newPassword })).status).toBe(400)
    const answer = await post('password/reset', { email, code: right.code, new_password: newPassword })
    expect(answer.status).toBe(200)
  })

  describe('with logout_ends_access', () => {
    it('a reset ends access tokens at once', async () => {
      const { email, access } = await newUser(at.gateway)
      expect(await isGood(access)).toBe(true)
      await post('password/forgot', { email })
      const { token } = await codeTo(at.gateway, email, keySecret)
      expect((await post('password/reset', { token, new_password: newPassword })).status).toBe(200)
      expect(await isGood(access)).toBe(false)
    })

    it.each(['code', 'token'] as const)(
      'a change of email by %s ends those of the sessions that end',
      async kind => {
        const { email, password, access } = await newUser(at.gateway)
        const other = await login(at.gateway.url, email, password)
        expect([await isGood(access), await isGood(other.access)]).toEqual([true, true])
        const next = `next.${email}`
        await post('email', { email: next, current_password: password }, access)
        const { code, token } = await codeTo(at.gateway, next, keySecret)
        const answer = await post('email/confirm', kind === 'code' ? { code } : { token }, access)
        expect(answer.status).toBe(200)
        expect([await isGood(access), await isGood(other.access)]).toEqual([kind === 'code', false])
      },
    )
  })

  it('what they change is told to services, in the transaction of the change', async () => {
    const { id, email, password, access } = await newUser(at.gateway)
    const next = `next.${email}`
    await post('email/verify/request', {}, access)
    await post('email/verify', { token: (await codeTo(at.gateway, email, keySecret)).token })
    await post('email', { email: next, current_password: password }, access)
    await post('email/confirm', { token: (await codeTo(at.gateway, next, keySecret)).token })
    await post('password/forgot', { email: next })
    const { token } = await codeTo(at.gateway, next, keySecret)
    expect((await post('password/reset', { token, new_password: newPassword })).status).toBe(200)
    const sql = 'select type, body from events where user_id = $1 order by id'
    const told = await at.gateway.sql<{ type: string; body: string }>(sql, [id])
    expect(told.map(({ type, body }) => [type, JSON.parse(body).data])).toEqual([
      ['user.email_verified', { user_id: id, email, plan: 'free', is_active: 1 }],
      ['user.email_changed', { user_id: id, email: next, previous_email: email, plan: 'free', is_active: 1 }],
    ])
  })

  it('a wrong try takes as long for an email with a code as for an unknown one', async () => {
    const { email } = await newUser(at.gateway)
    await post('password/forgot', { email })
    const { code } = await codeTo(at.gateway, email, keySecret)
    const times: [number[], number[]] = [[], []]
    for (let i = 0; i < 11; i += 1) {
      for (const [index, one] of [email, 'nobody@example.com'].entries()) {
        await at.gateway.sql('update account_codes set tries = 0')
        const start = performance.now()
        await post('password/reset', { email: one, code: otherCode(code), new_password: newPassword })
        times[index]?.push(performance.now() - start)
      }
    }
    const [known, unknown] = times.map(all => all.sort((a, b) => a - b)[5] ?? 0) as [number, number]
    expect(Math.abs(known - unknown) / unknown).toBeLessThan(0.15)
  })
})
