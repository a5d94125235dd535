// The cookies of sign-ins: their attributes, their number, their keys, and who receives them.
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { startCodeIssuer } from '../support/code-issuer.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { describeOverSetups, eitherSetup, embeddedSetup } from '../support/setups.ts'
import {
  begin,
  CookieBrowser,
  exchange,
  expectPair,
  expectReturned,
  locationOf,
  newPage,
  newPerson,
  publicUrl,
  returnUrl,
  type SignInStage,
  signInStage,
  startPath,
} from '../support/sign-in.ts'

/** Finishes the sign-in in `browser`: the user consents at the provider, and the browser requests the callback. */
async function finish(
  { alpha }: Pick<SignInStage, 'alpha'>,
  gateway: TestGateway,
  { browser, location }: { browser: CookieBrowser; location: string },
) {
  const { pathname, search } = alpha.consent(location, newPerson())
  return browser.get(gateway, pathname + search)
}

describeOverSetups('a sign-in', setup => {
  const at = signInStage(setup)

  it('sets one cookie, which the gateway deletes when the sign-in ends', async () => {
    const answer = await new CookieBrowser().get(at.gateway, startPath(newPage()))
    const state = locationOf(answer).searchParams.get('state')
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^peage-signin-[\w-]{8}=[\w.-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/),
    ])
    expect(answer.headers.getSetCookie()[0]).toContain(`peage-signin-${state?.slice(0, 8)}=`)
    const started = await begin(at.gateway)
    const [name] = started.browser.cookies.keys()
    const finished = await finish(at, at.gateway, started)
    expect(finished.headers.getSetCookie()).toEqual([`${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax`])
    expect(finished.headers.get('referrer-policy')).toBe('no-referrer')
    expect(finished.headers.get('cache-control')).toBe('no-store')
    expect(started.browser.cookies.size).toBe(0)
  })

  it('hides its values in the cookie, and does not put the cookie value into a URL', async () => {
    const page = newPage()
    const { browser, location } = await begin(at.gateway, { page })
    const [value = ''] = browser.cookies.values()
    const readable = value
      .split('.')
      .map(part => Buffer.from(part, 'base64url').toString('latin1'))
      .join(' ')
    const asked = new URL(location).searchParams
    for (const secret of [...asked.values(), ...Object.values(page.parameters), at.alpha.url])
      if (secret.length > 8) expect(readable).not.toContain(secret)
    expect(location).not.toContain(value)
  })

  it('has its own cookie in each tab, and each tab can finish', async () => {
    const browser = new CookieBrowser()
    const tabs = [await begin(at.gateway, { browser }), await begin(at.gateway, { browser, name: 'beta' })]
    expect(browser.cookies.size).toBe(2)
    const [first, second] = tabs
    if (first === undefined || second === undefined) throw new Error('no tabs')
    const callback = at.beta.consent(second.location, newPerson())
    const answer = await browser.get(at.gateway, callback.pathname + callback.search)
    expect(locationOf(answer).searchParams.get('state')).toBe(second.page.parameters.state)
    const returned = locationOf(await finish(at, at.gateway, first))
    expect(returned.searchParams.get('state')).toBe(first.page.parameters.state)
    expect(browser.cookies.size).toBe(0)
  })

  it('deletes the oldest sign-in cookies if there are more than four, and no other cookies', async () => {
    const browser = new CookieBrowser()
    browser.cookies.set('session', 'of another server')
    const tabs: Awaited<ReturnType<typeof begin>>[] = []
    for (let i = 0; i < 6; i += 1) {
      tabs.push(await begin(at.gateway, { browser }))
      expect(browser.cookies.size).toBe(1 + Math.min(4, i + 1))
      at.move(1_000)
    }
    expect(browser.cookies.get('session')).toBe('of another server')
    for (const [index, tab] of tabs.entries()) {
      const returned = locationOf(await finish(at, at.gateway, tab)).searchParams
      expect([index, returned.get('error'), returned.has('code')]).toEqual(
        index < 2 ? [index, 'sign_in_expired', false] : [index, null, true],
      )
    }
  })

  it('deletes unreadable sign-in cookies before readable ones', async () => {
    const browser = new CookieBrowser()
    const started = await begin(at.gateway, { browser })
    for (const name of ['aaaaaaaa', 'bbbbbbbb', 'cccccccc'])
      browser.cookies.set(`peage-signin-${name}`, 'unreadable')
    await begin(at.gateway, { browser })
    expect(browser.cookies.size).toBe(4)
    expect(locationOf(await finish(at, at.gateway, started)).searchParams.has('code')).toBe(true)
  })

  it('uses less than 8 KiB for cookies, even if other sites start many sign-ins with a long state', async () => {
    const browser = new CookieBrowser()
    for (let i = 0; i < 8; i += 1)
      await begin(at.gateway, { browser, page: newPage({ state: '😀'.repeat(512) }) })
    const bytes = [...browser.cookies].flat().join('').length
    expect(bytes).toBeLessThan(8_192)
    const last = await begin(at.gateway, { browser })
    expect(locationOf(await finish(at, at.gateway, last)).searchParams.has('code')).toBe(true)
  })

  it('succeeds even if the browser sends other cookies with the same name', async () => {
    const started = await begin(at.gateway)
    const [[name = '', value = ''] = []] = started.browser.cookies
    const { pathname, search } = at.alpha.consent(started.location, newPerson())
    const cookie = `${name}=of-another-server; ${name}=${value}; ${name}=`
    const answer = await call(at.gateway.url, 'GET', pathname + search, { headers: { cookie } })
    expect(locationOf(answer).searchParams.has('code')).toBe(true)
  })

  it('never sends its cookies to an upstream', async () => {
    const { browser } = await begin(at.gateway)
    const [[name = '', value = ''] = []] = browser.cookies
    const upper = name.toUpperCase()
    for (const headers of [
      { cookie: `${name}=${value}` },
      { cookie: `a=1; ${name}=${value}; b=2` },
      { cookie: [`${name}=${value}`, `a=1; __Host-${name}=${value}`, `${upper}=${value};b=2`] },
      { Cookie: ` ${name}  =${value}`, cOOkie: 'a=1' },
    ]) {
      at.upstream.received.length = 0
      expect(await statusOf(`${at.gateway.url}/open`, headers)).toBe(200)
      const [received] = at.upstream.received
      expect(JSON.stringify(received)).not.toContain(value)
      expect(JSON.stringify(received)).not.toMatch(/peage-signin/i)
      if (String(Object.values(headers)).includes('a=1'))
        expect(String(received?.headers.cookie)).toContain('a=1')
    }
  })
})

/** Sends headers unchanged, which `fetch` cannot do. @returns the status code */
function statusOf(url: string, headers: Record<string, string | string[]>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, response => {
      response.resume().on('end', () => resolve(Number(response.statusCode)))
    })
      .on('error', reject)
      .end()
  })
}

describe('with an https public_url, a sign-in', () => {
  const secure = 'https://api.example.com'
  const page = 'https://app.example.com/signed-in'
  const at = signInStage(eitherSetup(), {
    server: `, public_url: '${secure}/'`,
    returnUrls: [page],
    replicas: 1,
  })
  const newSecurePage = () => newPage({ return_url: page })

  it('has Secure cookies that only the host itself can set', async () => {
    const browser = new CookieBrowser()
    const answer = await browser.get(at.gateway, startPath(newSecurePage()))
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(
        /^__Host-peage-signin-[\w-]{8}=[\w.-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
      ),
    ])
    const [name] = browser.cookies.keys()
    const { href, searchParams } = locationOf(answer)
    expect(searchParams.get('redirect_uri')).toBe(`${secure}/api/v1/auth/providers/alpha/callback`)
    const finished = await finish(at, at.gateway, { browser, location: href })
    expect(String(finished.headers.get('location'))).toMatch(/^https:\/\/app\.example\.com\/signed-in\?code=/)
    expect(finished.headers.getSetCookie()).toEqual([
      `${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure`,
    ])
  })

  it('ignores cookies without the prefix __Host-, because a sibling host or a plain HTTP connection can set them', async () => {
    const started = await begin(at.gateway, { page: newSecurePage() })
    const [[name = '', value = ''] = []] = started.browser.cookies
    const victim = new CookieBrowser()
    victim.cookies.set(name.replace('__Host-', ''), value)
    const { searchParams } = locationOf(await finish(at, at.gateway, { ...started, browser: victim }))
    expect(searchParams.get('error')).toBe('sign_in_expired')
  })
})

describe('a sign-in cookie that is encrypted with an old secret', () => {
  it('is accepted only if auth.key_secret_old contains this secret', async () => {
    const alpha = await startCodeIssuer()
    const start = async (secrets: string) => {
      const gateway = await startGateway('', await embeddedSetup.open(), {
        server: `, public_url: '${publicUrl}'`,
        auth: `, return_urls: ['${returnUrl}'], ${secrets},
          providers: { alpha: { issuer: '${alpha.url}', client_id: client, client_secret: secret } }`,
      })
      gateway.clock.now = Date.now
      return gateway
    }
    const [old, both, second, none] = await Promise.all([
      start('key_secret: the first secret of these tests'),
      start('key_secret: the second secret of these tests, key_secret_old: the first secret of these tests'),
      start('key_secret: the second secret of these tests'),
      start('key_secret: ""'),
    ])
    try {
      for (const gateway of [second, none])
        expectReturned(await finish({ alpha }, gateway, await begin(old)), 'sign_in_expired')
      const started = await begin(old)
      const { searchParams } = locationOf(await finish({ alpha }, both, started))
      const body = { code: searchParams.get('code'), code_verifier: started.page.verifier }
      expectPair(await exchange(both, body), 201)
      // New cookies are encrypted with the new secret, so `old` refuses them and `second` accepts them.
      expectReturned(await finish({ alpha }, old, await begin(both)), 'sign_in_expired')
      expect(locationOf(await finish({ alpha }, second, await begin(both))).searchParams.has('code')).toBe(
        true,
      )
    } finally {
      await Promise.all([old, both, second, none].map(gateway => gateway.stop()))
      await alpha.close()
    }
  }, 60_000)
})
