// A provider sends the browser back to the callback. Tests the response to each kind of wrong callback.
import { expect, it } from 'vitest'
import { paths, sendJson } from '../providers/issuer.ts'
import type { Claims } from '../support/code-issuer.ts'
import { describeOverSetups } from '../support/setups.ts'
import {
  begin,
  CookieBrowser,
  expectReturned,
  locationOf,
  newPerson,
  pathOf,
  signInStage,
} from '../support/sign-in.ts'

describeOverSetups('the callback of a provider sends the browser to the page with', setup => {
  const at = signInStage(setup)

  /** Changes the callback URL to which the provider sends the browser. */
  type Change = (callback: URL) => void
  const set =
    (name: string, value: string): Change =>
    ({ searchParams }) =>
      searchParams.set(name, value)
  const remove =
    (name: string): Change =>
    ({ searchParams }) =>
      searchParams.delete(name)
  const append =
    (name: string, value: string): Change =>
    ({ searchParams }) =>
      searchParams.append(name, value)

  async function finish(change: Change, claims: Claims = newPerson()) {
    const { browser, page, location } = await begin(at.gateway)
    const callback = at.alpha.consent(location, claims)
    change(callback)
    return { page, answer: await browser.get(at.gateway, callback.pathname + callback.search) }
  }

  it.each<[string, string, Change]>([
    [
      'an error instead of a code',
      'access_denied',
      callback => {
        remove('code')(callback)
        set('error', 'access_denied')(callback)
      },
    ],
    ['an unknown error', 'provider_error', set('error', 'server_error')],
    ['an error and a code', 'access_denied', set('error', 'access_denied')],
    [
      'two errors',
      'provider_error',
      callback => {
        append('error', 'access_denied')(callback)
        append('error', 'access_denied')(callback)
      },
    ],
    ['a code that the provider does not know', 'provider_error', set('code', 'unknown')],
    ['no code', 'provider_error', remove('code')],
    ['an empty code', 'provider_error', set('code', '')],
    ['two codes', 'provider_error', append('code', 'second')],
    ['another iss', 'provider_error', set('iss', 'https://accounts.example.com')],
    [
      'another iss and access_denied',
      'provider_error',
      callback => {
        set('iss', 'https://accounts.example.com')(callback)
        set('error', 'access_denied')(callback)
      },
    ],
    ['no iss, although the provider announces it', 'provider_error', remove('iss')],
    ['two iss', 'provider_error', append('iss', 'https://accounts.example.com')],
    ['an ID token of the implicit flow', 'provider_error', set('id_token', 'x')],
    ['a response in a JWT', 'provider_error', set('response', 'x')],
  ])('an error if the callback has %s: %s', async (_, error, change) => {
    const { page, answer } = await finish(change)
    expectReturned(answer, error, page.parameters.state)
  })

  it('provider_error if the callback path names another provider, and this provider gets no code', async () => {
    const { page, answer } = await finish(callback => {
      callback.pathname = pathOf('beta', 'callback')
    })
    expectReturned(answer, 'provider_error', page.parameters.state)
    expect(at.beta.count(paths.token)).toBe(0)
  })

  it.each<[string, Change]>([
    ['no state', remove('state')],
    ['an unknown state', set('state', 's'.repeat(43))],
    ['two states', ({ searchParams }) => searchParams.append('state', String(searchParams.get('state')))],
    [
      'a state that only begins like the right one',
      ({ searchParams }) => {
        searchParams.set('state', `${searchParams.get('state')?.slice(0, 8)}${'s'.repeat(35)}`)
      },
    ],
    ['an empty state', set('state', '')],
  ])('sign_in_expired and without state if the callback has %s', async (_, change) => {
    expectReturned((await finish(change)).answer, 'sign_in_expired')
  })

  it('sign_in_expired if the browser has no cookie, a changed cookie or the cookie of another attempt', async () => {
    const { browser, location } = await begin(at.gateway)
    const { pathname, search } = at.alpha.consent(location, newPerson())
    const [[name = '', value = ''] = []] = browser.cookies
    const { browser: second } = await begin(at.gateway)
    for (const other of [
      undefined,
      '',
      `${value.slice(0, -2)}${value.endsWith('AA') ? 'BB' : 'AA'}`,
      'x'.repeat(500),
      [...second.cookies.values()][0],
    ]) {
      const attacked = new CookieBrowser()
      if (other !== undefined) attacked.cookies.set(name, other)
      expectReturned(await attacked.get(at.gateway, pathname + search), 'sign_in_expired')
    }
    // The browser that started the sign-in can still finish it.
    expect(locationOf(await browser.get(at.gateway, pathname + search)).searchParams.has('code')).toBe(true)
  })

  it('sign_in_expired after 10 minutes', async () => {
    const early = await begin(at.gateway)
    const callback = at.alpha.consent(early.location, newPerson())
    at.move(600_000)
    expectReturned(
      await early.browser.get(at.gateway, callback.pathname + callback.search),
      'sign_in_expired',
    )
  })

  it.each<[string, Claims]>([
    ['another nonce', { nonce: 'another' }],
    ['no nonce', { nonce: undefined }],
    ['another audience', { aud: 'another' }],
    ['another azp', { azp: 'another' }],
    ['another issuer', { iss: 'https://accounts.example.com' }],
    ['an exp in the past', { exp: 1 }],
    ['an iat that is too old', { iat: Math.floor(Date.now() / 1_000) - 3_600 }],
    ['a scope', { scope: 'openid' }],
    ['no sub', { sub: undefined }],
  ])('id_token_invalid if the ID token has %s', async (_, claims) => {
    const { page, answer } = await finish(() => {}, newPerson(claims))
    expectReturned(answer, 'id_token_invalid', page.parameters.state)
  })

  it('id_token_invalid if the token response has no valid ID token', async () => {
    const original = at.alpha.responses.get(paths.token)
    const foreign = await at.beta.idToken(newPerson())
    try {
      for (const id_token of [undefined, 'x', 7, foreign]) {
        at.alpha.responses.set(paths.token, sendJson({ access_token: 'x', token_type: 'Bearer', id_token }))
        const { page, answer } = await finish(() => {})
        expectReturned(answer, 'id_token_invalid', page.parameters.state)
      }
    } finally {
      if (original !== undefined) at.alpha.responses.set(paths.token, original)
    }
  })

  it('id_token_invalid if the UserInfo response has another sub or none', async () => {
    for (const sub of ['another', undefined, 7]) {
      at.alpha.profiles.set('person-of-userinfo', { sub, email: 'x@example.com', email_verified: true })
      const { page, answer } = await finish(() => {}, { sub: 'person-of-userinfo' })
      expectReturned(answer, 'id_token_invalid', page.parameters.state)
    }
  })

  it('provider_unavailable if the token endpoint or UserInfo fails', async () => {
    const { sub } = newPerson()
    for (const path of [paths.token, paths.userInfo]) {
      const original = at.alpha.responses.get(path)
      at.alpha.responses.set(path, (_, response) => response.writeHead(500).end())
      const { page, answer } = await finish(() => {}, { sub })
      if (original !== undefined) at.alpha.responses.set(path, original)
      expectReturned(answer, 'provider_unavailable', page.parameters.state)
    }
  })
})
