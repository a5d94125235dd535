// Tests the sign-in in a browser: the endpoints `start` and `callback`, and their responses to invalid requests.
import { describe, expect, it } from 'vitest'
import { paths } from '../providers/issuer.ts'
import { call } from '../support/client.ts'
import type { Claims } from '../support/code-issuer.ts'
import { startGateway } from '../support/gateway.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups, eitherSetup } from '../support/setups.ts'
import {
  begin,
  CookieBrowser,
  codeFor,
  exchange,
  expectPair,
  locationOf,
  newPage,
  newPerson,
  pathOf,
  publicUrl,
  refusals,
  returnUrl,
  signInStage,
  startPath,
  userOf,
  usersWith,
} from '../support/sign-in.ts'

const secondUrl = 'http://localhost:3000/second'

describeOverSetups('the sign-in in a browser', setup => {
  const at = signInStage(setup, {
    alpha: ", prompt: select_account, scopes: [openid, email, profile], domains: ['example.com']",
    returnUrls: [returnUrl, secondUrl],
  })

  it('offers the providers in the order of the configuration file', async () => {
    expectAnswer(await call(at.gateway.url, 'GET', '/api/v1/auth/providers'), 200, {
      providers: [
        { name: 'alpha', label: 'Alpha', browser: true },
        { name: 'beta', label: 'beta', browser: true },
      ],
    })
  })

  it('sends the browser to the provider with PKCE, and with new secrets for each sign-in', async () => {
    const page = newPage()
    const seen = new Set<string>()
    for (let i = 0; i < 2; i += 1) {
      const answer = await new CookieBrowser().get(at.gateway, startPath(page))
      const location = locationOf(answer)
      expect(location.origin + location.pathname).toBe(`${at.alpha.url}/authorize`)
      const { state, nonce, code_challenge, ...others } = Object.fromEntries(location.searchParams)
      expect(others).toEqual({
        response_type: 'code',
        client_id: 'client',
        redirect_uri: `${publicUrl}${pathOf('alpha', 'callback')}`,
        scope: 'openid email profile',
        prompt: 'select_account',
        code_challenge_method: 'S256',
      })
      for (const secret of [state, nonce, code_challenge, page.parameters.state]) {
        expect(secret).toMatch(/^[\w-]{11}$|^[\w-]{43}$/)
        seen.add(String(secret))
      }
      expect(location.href).not.toContain(page.parameters.code_challenge)
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
    // Each of the two sign-ins has three new values. Only the state of the page is the same in both.
    expect(seen.size).toBe(7)
  })

  it('creates an account, and gives the page a code for one session', async () => {
    const person = newPerson()
    const code = await codeFor(at, person)
    expect(await usersWith(at.gateway, person.email)).toEqual([])
    const created = await exchange(at.gateway, code)
    expectPair(created, 201)
    const [user] = await usersWith(at.gateway, person.email)
    expect(await userOf(at, created)).toBe(user?.id)
    expectRefusal(await exchange(at.gateway, code), ...refusals.codeInvalid)
    expectPair(await exchange(at.gateway, await codeFor(at, person)), 200)
  })

  it('can start, finish and get its tokens at different replicas', async () => {
    const { browser, page, location } = await begin(at.gateway)
    const { pathname, search } = at.alpha.consent(location, newPerson())
    const { searchParams } = locationOf(await browser.get(at.other, pathname + search))
    const body = { code: searchParams.get('code'), code_verifier: page.verifier }
    expectPair(await exchange(at.gateway, body), 201)
  })

  it('returns to the return_url of its start, with the unchanged state', async () => {
    const state = 'été 日本 &=+%00 😀'
    const page = newPage({ return_url: secondUrl, state })
    const { browser, location } = await begin(at.gateway, { page })
    const { pathname, search } = at.alpha.consent(location, newPerson())
    const answer = await browser.get(at.gateway, pathname + search)
    const { origin, pathname: path, searchParams } = locationOf(answer)
    expect([origin + path, searchParams.get('state')]).toEqual([secondUrl, state])
    expect(String(answer.headers.get('location'))).toMatch(/^[\x21-\x7e]+$/)
  })

  describe('at UserInfo', () => {
    const codeOf = async (claims: Claims, profile: object) => {
      const sub = String(claims.sub)
      at.alpha.profiles.set(sub, profile)
      return exchange(at.gateway, await codeFor(at, claims))
    }

    it('requests the email if the ID token has none', async () => {
      const { sub, email } = newPerson()
      expectPair(await codeOf({ sub }, { email: email.toUpperCase(), email_verified: 'true' }), 201)
      expect(await usersWith(at.gateway, email)).toHaveLength(1)
    })

    it('accepts only a verified email in a domain that is configured for the provider', async () => {
      const { sub, email } = newPerson()
      for (const profile of [{}, { email }, { email: email.replace('.com', '.org'), email_verified: true }])
        expectRefusal(await codeOf({ sub }, profile), ...refusals.unverified)
    })

    it('never requests the email if the ID token has an email, even an unverified one', async () => {
      const { sub, email } = newPerson()
      const before = at.alpha.count(paths.userInfo)
      const answer = await codeOf({ sub, email }, { email, email_verified: true })
      expectRefusal(answer, ...refusals.unverified)
      expect(at.alpha.count(paths.userInfo)).toBe(before)
    })
  })

  describe('at its endpoints', () => {
    const start = (query: string, name = 'alpha') =>
      call(at.gateway.url, 'GET', `${pathOf(name, 'start')}?${query}`)
    const { parameters } = newPage()
    const all = String(new URLSearchParams(parameters))
    const without = (name: keyof typeof parameters, value?: string) => {
      const query = new URLSearchParams(parameters)
      query.delete(name)
      if (value !== undefined) query.set(name, value)
      return String(query)
    }

    it.each([
      ['', 'return_url'],
      [without('return_url'), 'return_url'],
      [without('return_url', 'https://evil.example.com/'), 'return_url'],
      [`${all}&return_url=${encodeURIComponent(returnUrl)}`, 'return_url'],
      [`${all}&return_url=`, 'return_url'],
      [without('state'), 'state'],
      [without('state', ''), 'state'],
      [without('state', 's'.repeat(513)), 'state'],
      [`${all}&state=again`, 'state'],
      [`${all}&state`, 'state'],
      [without('code_challenge'), 'code_challenge'],
      [without('code_challenge', 'c'.repeat(42)), 'code_challenge'],
      [without('code_challenge', 'c'.repeat(44)), 'code_challenge'],
      [without('code_challenge', `${'c'.repeat(42)}=`), 'code_challenge'],
      [without('code_challenge', `${'c'.repeat(42)}+`), 'code_challenge'],
      [without('code_challenge', `${'c'.repeat(43)}\n`), 'code_challenge'],
      [`${all}&code_challenge=${'c'.repeat(43)}`, 'code_challenge'],
      [`return_url=${encodeURIComponent(returnUrl)}`, 'state'],
      ['state=s&code_challenge=c', 'return_url'],
    ])('refuses the query "%s" with 400, and the response names the field %s', async (query, field) => {
      const answer = await start(query)
      expectRefusal(answer, 400, 'request_invalid', { error: 'Requête invalide', field })
      expect([answer.headers.get('location'), answer.headers.getSetCookie()]).toEqual([null, []])
    })

    it('refuses an unknown provider', async () => {
      for (const endpoint of ['start', 'callback'])
        for (const name of ['gamma', '__proto__', 'toString'])
          expectRefusal(
            await call(at.gateway.url, 'GET', `${pathOf(name, endpoint)}?${all}`),
            ...refusals.unknown,
          )
    })

    it('refuses all methods except GET with 405', async () => {
      for (const endpoint of ['start', 'callback'])
        for (const method of ['HEAD', 'POST']) {
          const answer = await call(at.gateway.url, method, `${pathOf('alpha', endpoint)}?${all}`)
          expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET'])
          expect(answer.headers.getSetCookie()).toEqual([])
        }
      expect((await call(at.gateway.url, 'GET', '/api/v1/auth/exchange')).status).toBe(405)
    })

    it('accepts a state of 1 to 512 characters, even if each character has several bytes', async () => {
      for (const state of ['s'.repeat(512), '😀'.repeat(512), 'é'.repeat(512), 's'])
        expect((await start(without('state', state))).status).toBe(303)
    })
  })
})

describe('without return URLs, the sign-in in a browser', () => {
  it('is off, and its endpoints return 404, but the token endpoint for apps still exists', async () => {
    const stores = await eitherSetup().open()
    const gateway = await startGateway('', stores, {
      auth: `, providers: { alpha: { issuer: 'http://127.0.0.1:1', client_id: client } }`,
    })
    try {
      for (const [method, path] of [
        ['GET', startPath(newPage())],
        ['GET', pathOf('alpha', 'callback')],
        ['POST', '/api/v1/auth/exchange'],
        ['POST', startPath(newPage())],
        ['GET', '/api/v1/auth/exchange'],
      ] as const)
        expectRefusal(await call(gateway.url, method, path), 404, 'route_unknown', 'Route inconnue')
      expect((await call(gateway.url, 'HEAD', startPath(newPage()))).status).toBe(404)
      expectAnswer(await call(gateway.url, 'GET', '/api/v1/auth/providers'), 200, {
        providers: [{ name: 'alpha', label: 'alpha', browser: false }],
      })
      const sent = await call(gateway.url, 'POST', pathOf('alpha', 'token'), { body: {} })
      expectRefusal(sent, ...refusals.tokenMissing)
    } finally {
      await gateway.stop()
      await eitherSetup().drop(stores)
    }
  })

  it('has an empty list of providers if none is configured', async () => {
    const stores = await eitherSetup().open()
    const gateway = await startGateway('', stores)
    try {
      expectAnswer(await call(gateway.url, 'GET', '/api/v1/auth/providers'), 200, { providers: [] })
      for (const endpoint of ['start', 'callback'])
        expect((await call(gateway.url, 'GET', pathOf('alpha', endpoint))).status).toBe(404)
    } finally {
      await gateway.stop()
      await eitherSetup().drop(stores)
    }
  })
})
