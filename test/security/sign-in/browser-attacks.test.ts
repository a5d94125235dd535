// Attacks on the sign-in in a browser: foreign callbacks, stolen codes, replays, mixed-up providers, open redirects.
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { paths, sendJson } from '../../providers/issuer.ts'
import { call } from '../../support/client.ts'
import type { Claims } from '../../support/code-issuer.ts'
import { expectRefusal } from '../../support/refusals.ts'
import { describeOverSetups } from '../../support/setups.ts'
import {
  begin,
  CookieBrowser,
  exchange,
  expectPair,
  expectReturned,
  locationOf,
  newPage,
  newPerson,
  pathOf,
  publicUrl,
  refusals,
  returnUrl,
  sendIdToken,
  signInStage,
  startPath,
  userOf,
  usersWith,
} from '../../support/sign-in.ts'

describeOverSetups('an attack on the sign-in in a browser', setup => {
  const at = signInStage(setup, { returnUrls: [returnUrl, 'https://app.example.com/a%20b/'] })
  const attacker = newPerson()
  const victim = newPerson()

  /** Starts a sign-in, and signs a person in at the provider. The callback is not opened yet. */
  async function signedInAtProvider(claims: Claims) {
    const started = await begin(at.gateway)
    return { ...started, callback: at.alpha.consent(started.location, claims) }
  }
  /** Runs a test while the provider returns `id_token` for every code. */
  async function withIdToken<T>(id_token: string, run: () => Promise<T>): Promise<T> {
    const original = at.alpha.responses.get(paths.token)
    at.alpha.responses.set(paths.token, sendJson({ access_token: 'x', token_type: 'Bearer', id_token }))
    try {
      return await run()
    } finally {
      if (original !== undefined) at.alpha.responses.set(paths.token, original)
    }
  }
  const open = (browser: CookieBrowser, { pathname, search }: URL) =>
    browser.get(at.gateway, pathname + search)

  describe('with a callback of the attacker (login CSRF)', () => {
    it('fails in a browser without cookies, and the provider gets no request', async () => {
      const { browser, page, callback } = await signedInAtProvider(attacker)
      const before = at.alpha.seen.length
      expectReturned(await open(new CookieBrowser(), callback), 'sign_in_expired')
      expect(at.alpha.seen.length).toBe(before)
      // The control: in the browser of the attacker, the same callback succeeds.
      const { searchParams } = locationOf(await open(browser, callback))
      const body = { code: searchParams.get('code'), code_verifier: page.verifier }
      expectPair(await exchange(at.gateway, body), 201)
    })

    it('fails in a browser that has started its own sign-in, and that sign-in still succeeds', async () => {
      const { callback } = await signedInAtProvider(attacker)
      const own = await signedInAtProvider(victim)
      expectReturned(await open(own.browser, callback), 'sign_in_expired')
      const mixed = new URL(callback)
      const [[name = '', value = ''] = []] = own.browser.cookies
      // The name of a cookie ends with the first 8 characters of the state, which is no secret. The test also sends the
      // victim's cookie under the name that belongs to the attacker's state.
      const renamed = new CookieBrowser()
      renamed.cookies.set(name.replace(/.{8}$/, String(mixed.searchParams.get('state')).slice(0, 8)), value)
      expectReturned(await open(renamed, mixed), 'sign_in_expired')
      expect(locationOf(await open(own.browser, own.callback)).searchParams.has('code')).toBe(true)
    })

    it('fails even if the attacker can set cookies, because the page gets the state of the attacker and has another verifier', async () => {
      const { browser, page, callback } = await signedInAtProvider(attacker)
      const attacked = new CookieBrowser()
      for (const [name, value] of browser.cookies) attacked.cookies.set(name, value)
      const { searchParams } = locationOf(await open(attacked, callback))
      expect(searchParams.get('state')).toBe(page.parameters.state)
      const body = { code: searchParams.get('code'), code_verifier: newPage().verifier }
      expectRefusal(await exchange(at.gateway, body), ...refusals.codeInvalid)
    })
  })

  describe('with a stolen code (code injection)', () => {
    it('fails with a code of the provider, because the verifier is in the cookie of another browser', async () => {
      const stolen = (await signedInAtProvider(victim)).callback.searchParams.get('code')
      const own = await signedInAtProvider(attacker)
      own.callback.searchParams.set('code', String(stolen))
      expectReturned(await open(own.browser, own.callback), 'provider_error', own.page.parameters.state)
    })

    it('fails with a code of a provider that ignores PKCE, because the nonce differs', async () => {
      const first = await begin(at.gateway)
      const nonce = new URL(first.location).searchParams.get('nonce')
      const own = await signedInAtProvider(attacker)
      const id_token = await at.alpha.idToken({ ...victim, nonce })
      const answer = await withIdToken(id_token, () => open(own.browser, own.callback))
      expectReturned(answer, 'id_token_invalid', own.page.parameters.state)
    })

    it('fails with a code of the gateway and the verifier of another page, and uses up the code', async () => {
      const own = await begin(at.gateway)
      const { browser, page, callback } = await signedInAtProvider(victim)
      const code = locationOf(await open(browser, callback)).searchParams.get('code')
      for (const { verifier } of [own.page, page])
        expectRefusal(await exchange(at.gateway, { code, code_verifier: verifier }), ...refusals.codeInvalid)
    })
  })

  describe('with a replay', () => {
    it('of a callback fails, because the provider accepts the code only once', async () => {
      const { browser, page, callback } = await signedInAtProvider(newPerson())
      const copy = new CookieBrowser()
      for (const [name, value] of browser.cookies) copy.cookies.set(name, value)
      expect(locationOf(await open(browser, callback)).searchParams.has('code')).toBe(true)
      expectReturned(await open(copy, callback), 'provider_error', page.parameters.state)
      expectReturned(await open(browser, callback), 'sign_in_expired')
    })

    it('gives no second session, even if the provider accepts the code of the callback again', async () => {
      const { browser, page, location } = await begin(at.gateway)
      const nonce = new URL(location).searchParams.get('nonce')
      const callback = at.alpha.consent(location)
      const id_token = await at.alpha.idToken({ ...newPerson(), nonce })
      const codes = await withIdToken(id_token, async () => {
        const returned: URL[] = []
        for (let i = 0; i < 2; i += 1) {
          const copy = new CookieBrowser()
          for (const [name, value] of browser.cookies) copy.cookies.set(name, value)
          returned.push(locationOf(await open(copy, callback)))
        }
        return returned.map(({ searchParams }) => searchParams.get('code'))
      })
      const [first, second] = codes.map(code => ({ code, code_verifier: page.verifier }))
      expectPair(await exchange(at.gateway, first ?? {}), 201)
      expectRefusal(await exchange(at.other, second ?? {}), ...refusals.codeInvalid)
    })

    it('fails with the ID token of a browser sign-in at the endpoint for apps', async () => {
      const { location } = await begin(at.gateway)
      const nonce = String(new URL(location).searchParams.get('nonce'))
      const id_token = await at.alpha.idToken({ ...newPerson(), nonce })
      for (const body of [{}, { nonce }, { nonce: '' }])
        expectRefusal(await sendIdToken(at.gateway, { id_token, ...body }), ...refusals.tokenInvalid)
    })
  })

  describe('with two providers (mix-up)', () => {
    it('fails at the callback path of the other provider, and this provider gets no code', async () => {
      const { browser, page, callback } = await signedInAtProvider(victim)
      callback.pathname = pathOf('beta', 'callback')
      const before = at.beta.seen.length
      expectReturned(await open(browser, callback), 'provider_error', page.parameters.state)
      expect(at.beta.seen.length).toBe(before)
    })

    it('fails with the issuer of the other provider, and the code stays unused', async () => {
      const { browser, page, callback } = await signedInAtProvider(victim)
      callback.searchParams.set('iss', at.beta.url)
      const before = at.alpha.seen.length
      expectReturned(await open(browser, callback), 'provider_error', page.parameters.state)
      expect(at.alpha.seen.length).toBe(before)
    })

    it('fails with an ID token of the other provider', async () => {
      const { browser, page, location, callback } = await signedInAtProvider(victim)
      const nonce = new URL(location).searchParams.get('nonce')
      const id_token = await at.beta.idToken({ ...victim, nonce })
      const answer = await withIdToken(id_token, () => open(browser, callback))
      expectReturned(answer, 'id_token_invalid', page.parameters.state)
    })

    it('creates a separate user for each provider, even if both providers use the same sub', async () => {
      const { sub } = newPerson()
      const users: number[] = []
      for (const [name, issuer] of [
        ['alpha', at.alpha],
        ['beta', at.beta],
      ] as const) {
        const id_token = await issuer.idToken(newPerson({ sub }))
        const answer = await sendIdToken(at.gateway, { id_token }, name)
        expectPair(answer, 201)
        users.push(await userOf(at, answer))
      }
      expect(new Set(users).size).toBe(2)
    })
  })

  describe('with a return_url (open redirect)', () => {
    it.each([
      'https://evil.example.com/signed-in',
      `${returnUrl}.evil.example.com`,
      `${returnUrl}/`,
      `${returnUrl}/../evil`,
      `${returnUrl}?next=//evil.example.com`,
      `${returnUrl}?`,
      `${returnUrl}#`,
      `${returnUrl}#evil`,
      ` ${returnUrl}`,
      `${returnUrl} `,
      `${returnUrl}\t`,
      `${returnUrl}\u0000`,
      `${returnUrl}%00`,
      `${returnUrl}\r\nSet-Cookie: a=1`,
      returnUrl.toUpperCase(),
      returnUrl.replace('http:', 'HTTP:'),
      returnUrl.replace('localhost', 'LOCALHOST'),
      returnUrl.replace('localhost', 'localhost.'),
      returnUrl.replace('localhost', 'localhost@evil.example.com'),
      returnUrl.replace('localhost', 'user@localhost'),
      returnUrl.replace('localhost', 'evil.example.com\\@localhost'),
      returnUrl.replace('localhost', '127.0.0.1'),
      returnUrl.replace('http://', 'http:\\\\'),
      returnUrl.replace('http://', '//'),
      returnUrl.replace('http:', ''),
      returnUrl.replace('http://', 'http:/'),
      returnUrl.replace('http://', 'https://'),
      returnUrl.replace(':3000', ''),
      returnUrl.replace(':3000', ':3000@evil.example.com:3000'),
      returnUrl.replace('3000', '03000'),
      returnUrl.replace('signed-in', 'signed%2Din'),
      returnUrl.replace('signed-in', './signed-in'),
      returnUrl.replace('signed-in', '/signed-in'),
      returnUrl.slice(0, -1),
      new URL(returnUrl).origin,
      encodeURIComponent(returnUrl),
      'https://app.example.com/a b/',
      'https://app.example.com/a%20b',
      'https://app.example.com/A%20b/',
      'javascript:alert(1)',
      'data:text/html,x',
      '/signed-in',
      'null',
      `${returnUrl},https://app.example.com/a%20b/`,
    ])('is refused if the return_url is %j', async return_url => {
      const answer = await call(at.gateway.url, 'GET', startPath(newPage({ return_url })))
      expectRefusal(answer, 400, 'request_invalid', { error: 'Requête invalide', field: 'return_url' })
      expect([answer.headers.get('location'), answer.headers.getSetCookie()]).toEqual([null, []])
    })

    it('can redirect only to a listed page', async () => {
      const page = newPage({ return_url: 'https://app.example.com/a%20b/' })
      const { browser, location } = await begin(at.gateway, { page })
      const { headers } = await open(browser, at.alpha.consent(location, newPerson()))
      expect(headers.get('location')).toMatch(/^https:\/\/app\.example\.com\/a%20b\/\?code=[\w-]{43}&state=/)
    })

    it('has no effect if the callback contains the return_url', async () => {
      const { browser, callback } = await signedInAtProvider(newPerson())
      callback.searchParams.set('return_url', 'https://evil.example.com/')
      callback.searchParams.set('redirect_uri', 'https://evil.example.com/')
      const { origin, pathname } = locationOf(await open(browser, callback))
      expect(origin + pathname).toBe(returnUrl)
    })
  })

  it('with a foreign Host header does not change the redirect URI', async () => {
    const headers = {
      host: 'evil.example.com',
      'x-forwarded-host': 'evil.example.com',
      'x-forwarded-proto': 'https',
      forwarded: 'host=evil.example.com;proto=https',
    }
    const location = await new Promise<string>((resolve, reject) => {
      request(at.gateway.url + startPath(newPage()), { headers }, response => {
        resolve(String(response.resume().headers.location))
      })
        .on('error', reject)
        .end()
    })
    const redirectUri = new URL(location).searchParams.get('redirect_uri')
    expect(redirectUri).toBe(`${publicUrl}${pathOf('alpha', 'callback')}`)
  })

  it('with the session of the victim does not link the sign-in to the account of the victim', async () => {
    const { page, browser, callback } = await signedInAtProvider(newPerson())
    const code = locationOf(await open(browser, callback)).searchParams.get('code')
    const owner = newPerson()
    const session = await sendIdToken(at.gateway, { id_token: await at.alpha.idToken(owner) })
    const answer = await call(at.gateway.url, 'POST', '/api/v1/auth/exchange', {
      body: { code, code_verifier: page.verifier },
      token: String(session.body.access_token),
    })
    expectPair(answer, 201)
    expect(await userOf(at, answer)).not.toBe((await usersWith(at.gateway, owner.email))[0]?.id)
  })
})
