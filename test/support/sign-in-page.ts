// Serves the web page in docs/sign-in-with.md on a separate origin. On this page, users sign in with another provider.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { providerPassword } from './oidc-provider.ts'
import { listen } from './upstream.ts'

/** The page requests this path of the gateway with its access token. */
export const guardedPath = '/api/v1/courses/1'

export interface SignInPage {
  /** The origin of the page, for `server.cors`. */
  readonly origin: string
  /** The address of the page, for `auth.return_urls`. */
  readonly url: string
  close(): Promise<void>
}

const [, documented = ''] =
  /```html[^\n]*\n([\s\S]*?)```/.exec(readFileSync('docs/sign-in-with.md', 'utf8')) ?? []
const gatewayInPage = "'https://api.example.com'"
if (!documented.includes(gatewayInPage) || !documented.includes(guardedPath)) {
  throw new Error('docs/sign-in-with.md contains no page with the address of a gateway')
}

/** @param gatewayUrl returns the address at which browsers reach the gateway; it is called for each request */
export async function startSignInPage(gatewayUrl: () => string): Promise<SignInPage> {
  const server = createServer((request, response) => {
    if (new URL(request.url ?? '', 'http://page').pathname !== '/signed-in') {
      response.writeHead(204).end()
      return
    }
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(documented.replace(gatewayInPage, `'${gatewayUrl()}'`))
  })
  const origin = await listen(server)
  return {
    origin,
    url: `${origin}/signed-in`,
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** Clicks the button of a provider, and signs in at the login page. @param login `undefined` cancels the sign-in */
export async function signInWith(page: Page, label: string, login: string | undefined): Promise<void> {
  await page.getByRole('button', { name: `Sign in with ${label}` }).click()
  if (login !== undefined) {
    await page.getByLabel('User name').fill(login)
    await page.getByLabel('Password').fill(providerPassword)
  }
  await page.getByRole('button', { name: login === undefined ? 'Cancel' : 'Sign in', exact: true }).click()
}

/** Waits until the page shows a result, and returns it: the plan and the response of the route, or an error code. */
export async function shownResult(page: Page): Promise<string> {
  const result = page.locator('#result:not(:empty)')
  await result.waitFor()
  return (await result.textContent()) ?? ''
}
