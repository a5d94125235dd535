// Without a mail server, endpoints that must send a mail refuse all requests.
import { describe, it } from 'vitest'
import { call, giveKey, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

describeOverSetups('without a mail server', setup => {
  const at = journey(setup)
  const post = (path: string, body?: unknown, token?: string, headers: Record<string, string> = {}) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, {
      body,
      headers,
      ...(token === undefined ? {} : { token }),
    })
  const notConfigured = [501, 'mail_not_configured', "Envoi d'e-mails non configuré"] as const
  const invalid = [400, 'code_invalid', 'Code invalide ou expiré'] as const

  it.each([{ email: 'a@example.com' }, { email: 'no address' }, undefined])(
    'password/forgot returns 501 for any body: %j',
    async body => expectRefusal(await post('password/forgot', body), ...notConfigured),
  )

  describe.each(['email/verify/request', 'email'])('%s', path => {
    it('returns 501 to a signed-in user', async () => {
      const { access } = await newUser(at.gateway)
      expectRefusal(await post(path, {}, access), ...notConfigured)
    })

    it('refuses a request without a token with 401, and a request with an API key with 403', async () => {
      const key = `key of ${path}`
      await giveKey(at.gateway, await newUser(at.gateway), key)
      expectRefusal(await post(path), 401, 'token_invalid', 'Token invalide ou expiré')
      expectRefusal(
        await post(path, {}, undefined, { 'x-api-key': key }),
        403,
        'bearer_required',
        "Jeton d'accès requis",
      )
    })
  })

  it.each([
    ['password/reset', { email: 'a@example.com', code: '12345678', new_password: 'un mot de passe' }],
    ['password/reset', { token: 'x', new_password: 'un mot de passe' }],
    ['email/verify', { email: 'a@example.com', code: '12345678' }],
    ['email/verify', { token: 'x' }],
    ['email/confirm', { token: 'x' }],
  ])('%s refuses any code or token as invalid: %j', async (path, body) => {
    expectRefusal(await post(path, body), ...invalid)
  })

  it('email/confirm ignores the Authorization header if the body has a token; otherwise it requires a session', async () => {
    const { access } = await newUser(at.gateway)
    const code = { code: '12345678', token: ' ' }
    expectRefusal(await post('email/confirm', code), 401, 'token_invalid', 'Token invalide ou expiré')
    expectRefusal(await post('email/confirm', code, access), ...invalid)
    expectRefusal(await post('email/confirm', { token: 'x' }, 'not a token'), ...invalid)
  })
})
