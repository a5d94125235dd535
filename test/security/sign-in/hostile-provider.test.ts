// A provider that never ends its responses, or sends too many bytes, delays no other request of the gateway.
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { paths } from '../../providers/issuer.ts'
import { call } from '../../support/client.ts'
import { type CodeIssuer, startCodeIssuer } from '../../support/code-issuer.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { scrape } from '../../support/scrape.ts'
import { eitherSetup } from '../../support/setups.ts'
import {
  begin,
  CookieBrowser,
  expectReturned,
  newPage,
  newPerson,
  publicUrl,
  returnUrl,
  startPath,
  withoutLimits,
} from '../../support/sign-in.ts'
import { startUpstream, type Upstream } from '../../support/upstream.ts'

/** Responds in a hostile way to a request for `document`. The document itself is valid. */
type Behavior = (response: ServerResponse, document: object) => void

const padding = Buffer.alloc(10 * 1024 * 1024, ' ')
/** Returns the document in parts, with an additional member `padding` of 10 MiB. */
const padded = (document: object) => {
  const text = JSON.stringify({ ...document, padding: '' })
  return [Buffer.from(text.slice(0, -2)), padding, Buffer.from(text.slice(-2))]
}
const zippedPadding = gzipSync(padding)
const headers = { 'content-type': 'application/json' }

const behaviors: Record<string, Behavior> = {
  never: () => {},
  headers(response) {
    response.socket?.write('HTTP/1.1 200 OK\r\n')
    repeat(response, () => response.socket?.write('x-more: 1\r\n'))
  },
  trickle(response) {
    response.writeHead(200, headers)
    repeat(response, () => response.write(' '))
  },
  huge: (response, document) => response.writeHead(200, headers).end(Buffer.concat(padded(document))),
  bomb(response, document) {
    response.writeHead(200, { ...headers, 'content-encoding': 'gzip' })
    // A gzip file may have several members (RFC 1952, section 2.2), so each part is compressed separately.
    for (const part of padded(document)) response.write(part === padding ? zippedPadding : gzipSync(part))
    response.end()
  },
}

function repeat(response: ServerResponse, send: () => void): void {
  const timer = setInterval(send, 100)
  response.once('close', () => clearInterval(timer))
}

const stages = Object.keys(paths) as (keyof typeof paths)[]

describe('a provider with hostile responses', () => {
  let upstream: Upstream
  let gateway: TestGateway
  /** One provider for each combination of a stage and a behavior. */
  const all: { name: string; stage: keyof typeof paths; behavior: string; issuer: CodeIssuer }[] = []
  beforeAll(async () => {
    upstream = await startUpstream()
    for (const stage of stages)
      for (const behavior of Object.keys(behaviors))
        all.push({
          name: `${stage.toLowerCase()}-${behavior}`,
          stage,
          behavior,
          issuer: await startCodeIssuer(),
        })
    const providers = all.map(
      ({ name, issuer }) => `${name}: { issuer: '${issuer.url}', client_id: client, client_secret: secret }`,
    )
    gateway = await startGateway(
      `upstreams: { echo: { targets: ['${upstream.url}'] } }
routes: [{ path: /open, upstream: echo, auth: none }]`,
      await eitherSetup().open(),
      {
        rateLimits: withoutLimits,
        server: `, public_url: '${publicUrl}'`,
        auth: `, return_urls: ['${returnUrl}'], providers: { ${providers.join(', ')} }`,
      },
    )
    gateway.clock.now = Date.now
    // The first sign-in imports a library. This takes a second, which the measured sign-ins must not include.
    await begin(gateway, { name: 'token-never' })
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all(all.map(({ issuer }) => issuer.close()))
    await upstream?.close()
  })

  /**
   * Signs in at the provider.
   * @returns the time in milliseconds from the request that gets the hostile response until the error
   */
  async function signIn({ name, stage, behavior, issuer }: (typeof all)[number]): Promise<number> {
    const page = newPage()
    const browser = new CookieBrowser()
    const person = newPerson()
    let start = Number.NaN
    const misbehave = (document: () => object | Promise<object>) =>
      issuer.responses.set(paths[stage], async (_, response) => {
        start = performance.now()
        behaviors[behavior]?.(response, await document())
      })
    if (stage === 'discovery') {
      misbehave(() => issuer.discovery)
      const answer = await browser.get(gateway, startPath(page, name))
      const durationMs = performance.now() - start
      // The sign-in fails before the gateway sets a cookie, so it deletes no cookie.
      const query = new URLSearchParams({ error: 'provider_unavailable', state: page.parameters.state })
      expect([answer.status, answer.headers.get('location')]).toEqual([303, `${returnUrl}?${query}`])
      expect(answer.headers.getSetCookie()).toEqual([])
      return durationMs
    }
    const { location } = await begin(gateway, { browser, page, name })
    const nonce = new URL(location).searchParams.get('nonce')
    if (stage === 'keys') misbehave(() => issuer.jwks)
    if (stage === 'token')
      misbehave(async () => ({
        access_token: 'x',
        token_type: 'Bearer',
        id_token: await issuer.idToken({ ...person, nonce }),
      }))
    if (stage === 'userInfo') misbehave(() => person)
    const claims = stage === 'userInfo' ? { sub: person.sub } : person
    const { pathname, search } = issuer.consent(location, claims)
    const answer = await browser.get(gateway, pathname + search)
    const durationMs = performance.now() - start
    expectReturned(answer, 'provider_unavailable', page.parameters.state)
    return durationMs
  }

  it('causes provider_unavailable within 6 s at each stage, and other requests take less than 1 s', async () => {
    const isEndless = ({ behavior }: (typeof all)[number]) => /never|headers|trickle/.test(behavior)
    let isOver = false
    const timed = (providers: typeof all) =>
      Promise.all(providers.map(async provider => [provider.name, await signIn(provider)] as const))
    const endless = timed(all.filter(isEndless)).finally(() => {
      isOver = true
    })
    const others: number[] = []
    while (!isOver) {
      const start = performance.now()
      expect((await call(gateway.url, 'GET', '/open')).status).toBe(200)
      others.push(performance.now() - start)
      await sleep(20)
    }
    for (const [name, durationMs] of await endless)
      expect([name, durationMs < 6_000, durationMs > 4_500]).toEqual([name, true, true])
    for (const [name, durationMs] of await timed(all.filter(provider => !isEndless(provider))))
      expect([name, durationMs < 4_000]).toEqual([name, true])
    expect(others.length).toBeGreaterThan(20)
    expect(Math.max(...others)).toBeLessThan(1_000)
    const { sum } = await scrape(gateway.admin)
    const requests = 'peage_provider_requests_total'
    expect(sum(requests, { outcome: 'timeout' })).toBe(12)
    expect(sum(requests, { outcome: 'too_large' })).toBe(8)
    // The gateway must close every connection to a provider.
    await expect
      .poll(() => all.map(({ issuer }) => issuer.open()), { timeout: 5_000 })
      .toEqual(all.map(() => 0))
  })
})
