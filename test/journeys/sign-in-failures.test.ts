// Providers fail, redirect or change their keys. The log and the metrics show the failures, but no secrets.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { makeKey, paths, sendJson, signToken } from '../providers/issuer.ts'
import { call, newUser } from '../support/client.ts'
import type { Claims } from '../support/code-issuer.ts'
import { expectRefusal } from '../support/refusals.ts'
import { scrape } from '../support/scrape.ts'
import { describeOverSetups } from '../support/setups.ts'
import {
  begin,
  CookieBrowser,
  codeFor,
  exchange,
  expectPair,
  expectReturned,
  locationOf,
  newPage,
  newPerson,
  pathOf,
  refusals,
  returnUrl,
  sendIdToken,
  signInStage,
  startPath,
} from '../support/sign-in.ts'

type Respond = (request: IncomingMessage, response: ServerResponse) => void
const hourMs = 60 * 60_000

describeOverSetups('a provider', setup => {
  const at = signInStage(setup, { replicas: 1 })
  const tokenPath = () => at.alpha.responses.get(paths.token)
  let original: Respond | undefined
  afterEach(() => {
    for (const path of [paths.discovery, paths.keys]) at.alpha.responses.delete(path)
    if (original !== undefined) at.alpha.responses.set(paths.token, original)
  })

  /** Moves the clock to a time that no test has used. All cached documents of the provider have expired by then. */
  const moveOn = () => {
    usedMs += 10 * hourMs
    at.move(usedMs)
  }
  let usedMs = 0

  /** Sends an ID token that is fresh for the clock of the gateway. */
  const send = async (claims: Claims = {}, header: object = {}) => {
    const now = Math.floor(at.gateway.clock.now() / 1_000)
    const times = { iat: now, exp: now + 60 }
    const id_token = await at.alpha.idToken({ ...newPerson(), ...times, ...claims }, { ...header })
    return sendIdToken(at.gateway, { id_token })
  }
  const keyFetches = () => at.alpha.count(paths.keys)

  const failures: [string, () => Respond][] = [
    ['answers 500', () => (_, response) => response.writeHead(500).end()],
    ['answers 404', () => (_, response) => response.writeHead(404).end('{}')],
    ['answers 204', () => (_, response) => response.writeHead(204).end()],
    ['answers with a page', () => (_, response) => response.writeHead(200).end('<!doctype html>')],
    ['answers with a list', () => sendJson([])],
    ['answers with null', () => sendJson(null)],
    [
      'answers with the document of another issuer',
      () => sendJson({ ...at.alpha.discovery, issuer: 'https://accounts.example.com' }),
    ],
    [
      'closes the connection',
      () =>
        ({ socket }) =>
          socket.destroy(),
    ],
    [
      'closes the connection in the middle of a response',
      () => (_, response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('{"issuer":')
        setTimeout(() => response.destroy(), 20)
      },
    ],
    [
      'answers with bytes that are not HTTP',
      () =>
        ({ socket }) =>
          socket.end('hello\r\n\r\n'),
    ],
    [
      'redirects to another server',
      () => (_, response) => response.writeHead(302, { location: `${at.upstream.url}/open` }).end(),
    ],
    [
      'redirects to itself',
      () => (request, response) => response.writeHead(307, { location: `${request.url}` }).end(),
    ],
  ]

  describe.each(failures)('if it %s', (_, respond) => {
    it.each(['discovery', 'keys'] as const)('at its %s endpoint, is unavailable for 5 s', async document => {
      moveOn()
      at.alpha.responses.set(paths[document], respond())
      const before = at.alpha.count(paths[document])
      for (let i = 0; i < 3; i += 1) {
        const answer = await send()
        expectRefusal(answer, ...refusals.unavailable)
        expect(answer.headers.get('retry-after')).toBe('5')
      }
      if (document === 'discovery') {
        const page = newPage()
        const answer = await new CookieBrowser().get(at.gateway, startPath(page))
        const { state } = page.parameters
        const query = new URLSearchParams({ error: 'provider_unavailable', state })
        expect([answer.status, answer.headers.get('location')]).toEqual([303, `${returnUrl}?${query}`])
        expect(answer.headers.getSetCookie()).toEqual([])
      }
      expect(at.alpha.count(paths[document]) - before).toBe(1)
      at.alpha.responses.delete(paths[document])
      at.move(4_000)
      expectRefusal(await send(), ...refusals.unavailable)
      expect(at.alpha.count(paths[document]) - before).toBe(1)
      at.move(1_500)
      expectPair(await send(), 201)
      expect(at.upstream.received).toEqual([])
    })

    it('at its token endpoint, gets the code only once, and the browser returns to its page with an error', async () => {
      original ??= tokenPath()
      at.alpha.responses.set(paths.token, respond())
      const { browser, page, location } = await begin(at.gateway)
      const before = at.alpha.count(paths.token)
      const { pathname, search } = at.alpha.consent(location, newPerson())
      const answer = await browser.get(at.gateway, pathname + search)
      const error = locationOf(answer).searchParams.get('error') ?? ''
      expect(['provider_unavailable', 'provider_error', 'id_token_invalid']).toContain(error)
      expectReturned(answer, error, page.parameters.state)
      expect(at.alpha.count(paths.token) - before).toBe(1)
      expect(at.upstream.received).toEqual([])
    })
  })

  it('gets only one more key request after it has changed its keys', async () => {
    moveOn()
    expectPair(await send(), 201)
    const next = await makeKey(`next-${randomUUID()}`)
    const old = at.alpha.jwks.keys.splice(0, Number.POSITIVE_INFINITY, next.jwk)
    try {
      at.move(31_000)
      const before = keyFetches()
      const now = Math.floor(at.gateway.clock.now() / 1_000)
      const claims = { iss: at.alpha.url, aud: 'client', iat: now, exp: now + 60 }
      const sent = await Promise.all(
        Array.from({ length: 5 }, async () => {
          const id_token = await signToken(next, { ...claims, ...newPerson() })
          return sendIdToken(at.gateway, { id_token })
        }),
      )
      for (const answer of sent) expectPair(answer, 201)
      expect(keyFetches() - before).toBe(1)
      expectRefusal(await send(), ...refusals.tokenInvalid)
    } finally {
      at.alpha.jwks.keys.splice(0, 1, ...old)
    }
  })

  it('gets at most one key request in 30 s if tokens name unknown keys', async () => {
    moveOn()
    expectPair(await send(), 201)
    const before = keyFetches()
    const unknown = () => Promise.all(Array.from({ length: 10 }, () => send({}, { kid: randomUUID() })))
    const rounds: number[] = []
    for (const waitMs of [0, 1_000, 28_000, 1_500, 5_000]) {
      at.move(waitMs)
      for (const answer of await unknown()) expectRefusal(answer, ...refusals.tokenInvalid)
      rounds.push(keyFetches() - before)
    }
    expect(rounds).toEqual([1, 1, 1, 2, 2])
    expectPair(await send(), 201)
  })

  it('can still sign users in for an hour if its keys cannot be fetched again', async () => {
    moveOn()
    expectPair(await send(), 201)
    const before = keyFetches()
    at.move(9 * 60_000)
    expectPair(await send(), 201)
    expect(keyFetches() - before).toBe(0)
    for (const path of [paths.discovery, paths.keys])
      at.alpha.responses.set(path, (_, response) => response.writeHead(500).end())
    at.move(2 * 60_000)
    expectPair(await send(), 201)
    expect(keyFetches() - before).toBe(1)
    at.move(48 * 60_000)
    expectPair(await send(), 201)
    at.move(2 * 60_000)
    expectRefusal(await send(), ...refusals.unavailable)
  })
})

describeOverSetups('the log and the metrics of sign-ins', setup => {
  const at = signInStage(setup, { replicas: 1 })

  it('name the provider and the reason, and contain no code, token, email or secret', async () => {
    const secrets: string[] = ['client_secret', 'secret of this test']
    const note = (...texts: unknown[]) => secrets.push(...texts.map(String))
    const user = await newUser(at.gateway)
    const persons = [newPerson(), newPerson({ email: user.email }), newPerson({ email_verified: false })]
    for (const person of persons) {
      note(person.sub, person.email)
      const code = await codeFor(at, person)
      note(code.code, code.code_verifier)
      for (const body of [code, { ...code, password: user.password }, { ...code, code_verifier: 'x' }])
        note((await exchange(at.gateway, body)).body.access_token ?? user.password)
    }
    const { browser, page, location } = await begin(at.gateway)
    note(...browser.cookies.values(), page.verifier, page.parameters.state, page.parameters.code_challenge)
    note(...['state', 'nonce', 'code_challenge'].map(name => new URL(location).searchParams.get(name)))
    const callback = at.alpha.consent(location, { ...newPerson(), nonce: 'the nonce of this test' })
    note(callback.searchParams.get('code'), 'the nonce of this test')
    expectReturned(
      await browser.get(at.gateway, callback.pathname + callback.search),
      'id_token_invalid',
      page.parameters.state,
    )
    for (const claims of [{}, { aud: 'other' }, { iat: 1 }, { exp: 'x' }, { sub: 'secret-sub\u0000' }]) {
      const person = newPerson()
      const id_token = await at.alpha.idToken({ ...person, ...claims })
      note(id_token, id_token.split('.')[1], id_token.split('.')[2], person.email, 'secret-sub')
      await sendIdToken(at.gateway, { id_token })
      await sendIdToken(at.gateway, { id_token, nonce: 'secret nonce' })
      await sendIdToken(at.gateway, { id_token: `${id_token}x` })
    }
    note('secret nonce')
    for (const error of ['access_denied', 'server_error']) {
      const started = await begin(at.gateway)
      const returned = at.alpha.consent(started.location, newPerson())
      returned.searchParams.set('error', error)
      returned.searchParams.set('error_description', 'secret description')
      note(returned.searchParams.get('code'), 'secret description')
      await started.browser.get(at.gateway, returned.pathname + returned.search)
    }
    const original = at.alpha.responses.get(paths.token)
    for (const [status, body] of [
      [400, { error: 'invalid_grant', error_description: 'secret reason' }],
      [200, { access_token: 'secret-access', token_type: 'Bearer', id_token: 'secret-id-token' }],
      [500, { error: 'secret-error' }],
    ] as const) {
      const started = await begin(at.gateway)
      at.alpha.responses.set(paths.token, sendJson(body, status))
      const { pathname, search } = at.alpha.consent(started.location, newPerson())
      await started.browser.get(at.gateway, pathname + search)
      note(...Object.values(body).filter(text => text.startsWith('secret')))
    }
    if (original !== undefined) at.alpha.responses.set(paths.token, original)
    at.beta.responses.set(paths.discovery, (_, response) => response.writeHead(500).end('secret page'))
    note('secret page')
    await sendIdToken(at.gateway, { id_token: await at.beta.idToken() }, 'beta')

    const log = at.gateway.log.join('')
    const lines = at.gateway.log.map(line => JSON.parse(line) as Record<string, unknown>)
    const failed = lines.filter(({ msg }) => msg === 'sign-in with an identity provider failed')
    expect(failed.map(({ provider, reason }) => `${provider} ${reason}`)).toEqual([
      'alpha id_token_invalid',
      'alpha provider_error',
      'alpha provider_unavailable',
      'beta provider_unavailable',
    ])
    expect(failed.map(({ problem }) => problem)).toContain(
      `GET ${at.beta.url}/.well-known/openid-configuration: status 500`,
    )
    for (const secret of secrets) expect(log).not.toContain(secret)
    const statuses = lines.filter(({ route }) => String(route).includes('/auth/')).map(({ status }) => status)
    expect(statuses.length).toBeGreaterThan(20)
    expect(statuses.filter(status => Number(status) === 500)).toEqual([])
  })

  it('contain at most one line per minute for each provider and reason, even if many tokens are invalid', async () => {
    const lines = () =>
      at.gateway.log
        .filter(line => line.includes('sign-in with an identity provider failed'))
        .map(line => JSON.parse(line) as Record<string, unknown>)
    at.move(hourMs)
    const before = lines().length
    for (let i = 0; i < 20; i += 1) await sendIdToken(at.gateway, { id_token: 'not a JWT' })
    at.move(61_000)
    await sendIdToken(at.gateway, { id_token: 'not a JWT' })
    const told = lines().slice(before)
    expect(told.map(({ failures, problem }) => [failures, problem])).toEqual([
      [expect.any(Number), 'ID token: it is not a JWT'],
      [20, 'ID token: it is not a JWT'],
    ])
    expect(JSON.stringify(told)).not.toContain('stack')
  })

  it('show the error that a browser brings back to its page', async () => {
    const before = await scrape(at.gateway.admin)
    at.gateway.log.length = 0
    await call(at.gateway.url, 'GET', pathOf('alpha', 'callback'))
    const { browser, location } = await begin(at.gateway)
    const state = String(new URL(location).searchParams.get('state'))
    const query = new URLSearchParams({ state, error: 'access_denied', iss: at.alpha.url })
    await browser.get(at.gateway, `${pathOf('alpha', 'callback')}?${query}`)
    const decisions = () =>
      at.gateway.log
        .map(line => JSON.parse(line) as Record<string, unknown>)
        .filter(({ route }) => String(route).endsWith('/callback'))
        .map(({ status, decision }) => [status, decision])
    await expect.poll(decisions).toEqual([
      [303, 'sign_in_expired'],
      [303, 'access_denied'],
    ])
    const after = await scrape(at.gateway.admin)
    for (const [outcome, count] of Object.entries({ sign_in_expired: 1, access_denied: 1, success: 0 })) {
      const labels = { endpoint: 'external_callback', outcome }
      const counted = after.value('peage_auth_total', labels) - before.value('peage_auth_total', labels)
      expect([outcome, counted]).toEqual([outcome, count])
    }
  })

  it('count the requests to each sign-in endpoint and to each provider', async () => {
    const person = newPerson()
    const before = await scrape(at.gateway.admin)
    await exchange(at.gateway, await codeFor(at, person))
    await exchange(at.gateway, {})
    const id_token = await at.alpha.idToken(person)
    for (let i = 0; i < 2; i += 1) await sendIdToken(at.gateway, { id_token })
    await call(at.gateway.url, 'GET', pathOf('alpha', 'start'))
    await call(at.gateway.url, 'GET', pathOf('gamma', 'callback'))
    const after = await scrape(at.gateway.admin)
    const counted = (name: string, labels: Record<string, string>) =>
      after.value(name, labels) - before.value(name, labels)
    const auth = (endpoint: string, outcome: string) => counted('peage_auth_total', { endpoint, outcome })
    expect([
      auth('external_start', 'success'),
      auth('external_start', 'request_invalid'),
      auth('external_callback', 'success'),
      auth('external_callback', 'provider_unknown'),
      auth('exchange', 'success'),
      auth('exchange', 'code_invalid'),
      auth('external_token', 'success'),
      auth('external_token', 'id_token_invalid'),
    ]).toEqual([1, 1, 1, 1, 1, 1, 1, 1])
    const requests = { provider: 'alpha', outcome: 'ok' }
    expect(counted('peage_provider_requests_total', requests)).toBe(1)
    // No label contains a text that a client chose, for example the unknown provider `gamma`.
    expect(after.page).not.toContain('gamma')
  })
})
