// Users sign in with a real browser at a real provider. They start on the page of docs/sign-in-with.md, which has
// another origin than the gateway.
import { createServer, request as forward, type Server } from 'node:http'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openPage, startBrowser, type Watched } from '../support/browser.ts'
import { call, login, newUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { type OidcProvider, type ProviderUser, startOidcProvider } from '../support/oidc-provider.ts'
import { describeWithChromium } from '../support/services.ts'
import { describeOverSetups, services } from '../support/setups.ts'
import {
  guardedPath,
  type SignInPage,
  shownResult,
  signInWith,
  startSignInPage,
} from '../support/sign-in-page.ts'
import { listen, startUpstream, type Upstream } from '../support/upstream.ts'

describeWithChromium('in a real browser', chromium => {
  describeOverSetups('sign-in with a provider', setup => {
    // A run takes two seconds. To save time, each set-up is tested with only one kind of provider.
    const emailIn = setup === services ? 'userinfo' : 'id_token'
    describe(`if the provider sends the email in ${emailIn}`, () => {
      let browser: Browser
      let stores: Stores
      let upstream: Upstream
      let page: SignInPage
      let provider: OidcProvider
      let replicas: TestGateway[] = []
      let balancer: Server
      let publicUrl: string
      let first: TestGateway
      const users: Record<string, ProviderUser> = {}

      beforeAll(async () => {
        stores = await setup.open()
        upstream = await startUpstream()
        balancer = startBalancer(() => replicas)
        // The page and the provider use the host 127.0.0.1, and the gateway uses `localhost`. So the gateway is
        // another site for the browser.
        publicUrl = (await listen(balancer)).replace('127.0.0.1', 'localhost')
        page = await startSignInPage(() => publicUrl)
        const redirectUris = [`${publicUrl}/api/v1/auth/providers/company/callback`]
        const clients = [{ id: 'gateway', secret: 'a-secret-of-the-gateway', redirectUris }]
        provider = await startOidcProvider({ clients, users, emailIn })
        const count = stores.postgres === '' ? 1 : 2
        const start = () =>
          startGateway(
            `upstreams: { echo: { targets: ['${upstream.url}'] } }
routes:
  - { path: '${guardedPath}', upstream: echo }
mail: { smtp: 'smtp://127.0.0.1:1', from: no-reply@example.com }`,
            stores,
            {
              server: `, public_url: '${publicUrl}', cors: { origins: ['${page.origin}'] }`,
              auth: `, return_urls: ['${page.url}'], providers: { company: { label: Company,
                issuer: '${provider.issuer}', client_id: gateway, client_secret: a-secret-of-the-gateway } }`,
            },
          )
        replicas = await Promise.all(Array.from({ length: count }, start))
        // The provider uses the real time, so the clocks of the gateways must use the real time too.
        for (const { clock } of replicas) clock.now = Date.now
        first = replicas[0] ?? expect.unreachable()
        browser = await startBrowser(chromium)
      })
      afterAll(async () => {
        await browser?.close()
        await Promise.all(replicas.map(replica => replica.stop()))
        balancer?.closeAllConnections()
        balancer?.close()
        await provider?.close()
        await page?.close()
        await upstream?.close()
        if (stores !== undefined) await setup.drop(stores)
      })

      const opened: Watched[] = []
      afterEach(async () => {
        await Promise.all(browser.contexts().map(context => context.close()))
        expect(opened.splice(0).flatMap(({ complaints }) => complaints)).toEqual([])
      })

      /** Opens the page in a new browser context, without cookies. @param statuses the error status codes to expect */
      async function openSignInPage(...statuses: number[]) {
        const watched = await openPage(browser, {}, statuses)
        opened.push(watched)
        await watched.page.goto(page.url)
        return watched.page
      }

      /** Adds a user to the provider. @returns the name to enter on the login page of the provider, and the email */
      function newPerson(claims: Partial<ProviderUser> = {}) {
        const name = `person${Object.keys(users).length}.${process.pid}`
        const email = `${name}@example.com`
        users[name] = { sub: `sub-of-${name}`, email, email_verified: true, ...claims }
        return { name, email }
      }

      const usersWith = (email: string) =>
        first.sql<{ id: number; password_hash: string; isVerified: boolean }>(
          `select id, password_hash, email_verified_at is not null as "isVerified" from users where email = $1`,
          [email],
        )
      const userOfLastRequest = () => upstream.received.at(-1)?.headers['x-user-id']

      it('creates an account, and gives the page tokens for a guarded route', async () => {
        const { name, email } = newPerson()
        const tab = await openSignInPage()
        await signInWith(tab, 'Company', name)
        expect(await shownResult(tab)).toMatch(/^plan free, 200: /)
        // After the sign-in, the address contains no code, and the browser has no cookie of the gateway.
        expect(tab.url()).toBe(page.url)
        expect(await tab.context().cookies(publicUrl)).toEqual([])
        const created = await usersWith(email)
        expect(created).toEqual([{ id: expect.any(Number), password_hash: '!', isVerified: true }])
        expect(userOfLastRequest()).toBe(String(created[0]?.id))
        for (const { log } of replicas) expect(log.join('')).toContain('/api/v1/auth/')
      })

      it('signs a person in to the same account again, also in another browser', async () => {
        const { name, email } = newPerson()
        for (let i = 0; i < 2; i++) {
          const tab = await openSignInPage()
          await signInWith(tab, 'Company', name)
          expect(await shownResult(tab)).toMatch(/^plan free, 200: /)
        }
        const created = await usersWith(email)
        expect(created).toHaveLength(1)
        expect(userOfLastRequest()).toBe(String(created[0]?.id))
      })

      it('links an unverified account only with its password', async () => {
        const user = await newUser(first)
        const { name } = newPerson({ email: user.email })
        const tab = await openSignInPage(401, 409)
        await signInWith(tab, 'Company', name)
        expect(await shownResult(tab)).toBe('account_exists')
        const tryPassword = async (password: string) => {
          await tab.getByLabel('Password').fill(password)
          await tab.getByRole('button', { name: 'Sign in', exact: true }).click()
        }
        await tryPassword('a wrong password')
        await tab.getByText('credentials_invalid').waitFor()
        await tryPassword(user.password)
        await tab.getByText('plan free, 200: ').waitFor()
        expect(userOfLastRequest()).toBe(String(user.id))
        expect(await usersWith(user.email)).toMatchObject([{ id: user.id, isVerified: true }])
      })

      it('resets an account that another person registered before with the same email', async () => {
        const attacker = await newUser(first)
        const { name } = newPerson({ email: attacker.email })
        const tab = await openSignInPage(409)
        await signInWith(tab, 'Company', name)
        expect(await shownResult(tab)).toBe('account_exists')
        await tab.getByRole('button', { name: 'Reset the account' }).click()
        await tab.getByText('plan free, 200: ').waitFor()
        expect(userOfLastRequest()).toBe(String(attacker.id))
        const { refresh: refresh_token } = attacker
        const refreshed = await call(first.url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token } })
        expect(refreshed.status).toBe(401)
        expect((await login(first.url, attacker.email, attacker.password)).access).toBe('undefined')
      })

      it('refuses an email that the provider has not verified', async () => {
        const { name, email } = newPerson({ email_verified: false })
        const tab = await openSignInPage(403)
        await signInWith(tab, 'Company', name)
        expect(await shownResult(tab)).toBe('provider_email_unverified')
        expect(await usersWith(email)).toEqual([])
      })

      it('brings a user who cancels back to the page', async () => {
        const tab = await openSignInPage()
        await signInWith(tab, 'Company', undefined)
        expect(await shownResult(tab)).toBe('access_denied')
        expect(tab.url()).toBe(page.url)
      })

      it('does not finish a sign-in that an attacker began in another browser', async () => {
        const { name, email } = newPerson()
        const query = new URLSearchParams({
          return_url: page.url,
          state: 'a-state',
          code_challenge: 'c'.repeat(43),
        })
        const start = `/api/v1/auth/providers/company/start?${query}`
        const location = (await call(publicUrl, 'GET', start)).headers.get('location')
        const callback = await provider.signIn(String(location), name)
        const tab = await openSignInPage()
        await tab.goto(callback.href)
        expect(await shownResult(tab)).toBe('sign_in_expired')
        expect(await usersWith(email)).toEqual([])
      })

      it('does not exchange a code that comes with the state of another browser', async () => {
        const tab = await openSignInPage()
        const requested: string[] = []
        tab.on('request', request => requested.push(new URL(request.url()).pathname))
        await tab.goto(`${page.url}?code=of-an-attacker&state=of-an-attacker`)
        expect(await shownResult(tab)).toBe('This tab did not start the sign-in.')
        expect(requested).not.toContain('/api/v1/auth/exchange')
      })
    })
  })
})

/** Forwards requests to the replicas in turn, so that no two consecutive requests reach the same replica. */
function startBalancer(replicas: () => readonly TestGateway[]): Server {
  let next = 0
  return createServer((request, response) => {
    const all = replicas()
    const target = all[next++ % all.length]?.url ?? ''
    const { method, headers, url = '' } = request
    const forwarded = forward(target + url, { method, headers }, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(response)
    })
    forwarded.on('error', () => response.destroy())
    request.pipe(forwarded)
  })
}
