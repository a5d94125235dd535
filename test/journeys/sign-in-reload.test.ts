// The configuration changes while a sign-in is in progress.
import { afterEach, expect, it } from 'vitest'
import { paths } from '../providers/issuer.ts'
import { call, newUser } from '../support/client.ts'
import type { Edit } from '../support/gateway.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'
import {
  begin,
  codeFor,
  exchange,
  expectPair,
  expectReturned,
  locationOf,
  newPage,
  newPerson,
  refusals,
  returnUrl,
  sendIdToken,
  signInStage,
  startPath,
} from '../support/sign-in.ts'

const secondUrl = 'http://localhost:3000/second'

describeOverSetups('after a reload that', setup => {
  const at = signInStage(setup, {
    returnUrls: [returnUrl, secondUrl],
    alpha: ', register: true',
    replicas: 1,
  })
  let restore: (() => Promise<void>) | undefined
  const change = async (...edits: readonly Edit[]) => {
    restore = await at.gateway.configure(...edits)
    expect(at.gateway.refused).toEqual([])
  }
  afterEach(async () => {
    await restore?.()
    restore = undefined
  })

  const finish = async ({ browser, location }: Awaited<ReturnType<typeof begin>>, claims = newPerson()) => {
    const { pathname, search } = at.alpha.consent(location, claims)
    return browser.get(at.gateway, pathname + search)
  }

  it('does not change the provider, a sign-in succeeds without new requests for the documents of the provider', async () => {
    const started = await begin(at.gateway)
    locationOf(await finish(await begin(at.gateway)))
    const before = at.alpha.seen.length
    await change(['label: Alpha', 'label: Alpha'])
    expect(locationOf(await finish(started)).searchParams.has('code')).toBe(true)
    expect(at.alpha.seen.slice(before).map(({ path }) => path)).toEqual([paths.token])
  })

  it('removes the return_url of a sign-in, the sign-in ends with sign_in_expired at the first return URL', async () => {
    const started = await begin(at.gateway, { page: newPage({ return_url: secondUrl }) })
    await change([`, '${secondUrl}'`, ''])
    const answer = await finish(started)
    expect([answer.status, answer.headers.get('location')]).toEqual([
      303,
      `${returnUrl}?error=sign_in_expired`,
    ])
    expect(started.browser.cookies.size).toBe(0)
    expect((await call(at.gateway.url, 'GET', startPath(started.page))).body).toMatchObject({
      field: 'return_url',
    })
  })

  it.each<[string, () => [string, string]]>([
    [
      'changes the client of the provider',
      () => [
        'client_id: client, client_secret: secret, register',
        'client_id: next, client_secret: secret, register',
      ],
    ],
    [
      'changes the issuer of the provider',
      () => [`issuer: '${at.alpha.url}'`, `issuer: 'http://127.0.0.1:1'`],
    ],
  ])('%s, a sign-in ends with provider_error, and the provider gets no code', async (_, edit) => {
    const started = await begin(at.gateway)
    const before = at.alpha.count(paths.token)
    await change(edit())
    expectReturned(await finish(started), 'provider_error', started.page.parameters.state)
    expect(at.alpha.count(paths.token)).toBe(before)
  })

  it('removes the provider, its endpoints return 404, and its codes are invalid', async () => {
    const started = await begin(at.gateway)
    const code = await codeFor(at, newPerson())
    const id_token = await at.alpha.idToken(newPerson())
    await change(
      ['label: Alpha,', 'label: Alpha, client_id: "",'],
      ['client_id: client, client_secret: secret, register', 'register'],
    )
    expectRefusal(await finish(started), ...refusals.unknown)
    expectRefusal(await sendIdToken(at.gateway, { id_token }), ...refusals.unknown)
    expectRefusal(await exchange(at.gateway, code), ...refusals.codeInvalid)
    await restore?.()
    // The refused exchange used up the code. So the code stays invalid although the provider is configured again.
    expectRefusal(await exchange(at.gateway, code), ...refusals.codeInvalid)
  })

  it('changes the issuer, a code of the old issuer is invalid', async () => {
    const code = await codeFor(at, newPerson())
    await change([`issuer: '${at.alpha.url}'`, `issuer: 'http://127.0.0.1:1'`])
    expectRefusal(await exchange(at.gateway, code), ...refusals.codeInvalid)
  })

  it('closes the registration, a code creates no account, but signs a known person in', async () => {
    const known = newPerson()
    expectPair(await exchange(at.gateway, await codeFor(at, known)), 201)
    const codes = [await codeFor(at, known), await codeFor(at, newPerson())]
    await change(['register: true', 'register: false'])
    const answers = await Promise.all(codes.map(code => exchange(at.gateway, code)))
    expectPair(answers[0] ?? expect.unreachable(), 200)
    expectRefusal(answers[1] ?? expect.unreachable(), ...refusals.closed)
    await restore?.()
    // The refusal has not used up the code.
    expectPair(await exchange(at.gateway, codes[1] ?? {}), 201)
  })

  it('turns linking off, a person is linked to an account with the same verified email only with its password', async () => {
    const user = await newUser(at.gateway)
    await at.gateway.sql('update users set email_verified_at = now() where id = $1', [user.id])
    const code = await codeFor(at, newPerson({ email: user.email }))
    const refusedReset = await codeFor(at, newPerson({ email: user.email }))
    await change(['register: true', 'link: false'])
    expectRefusal(await exchange(at.gateway, code), ...refusals.exists)
    expectRefusal(await exchange(at.gateway, { ...refusedReset, reset: true }), ...refusals.exists)
    expectRefusal(await exchange(at.gateway, refusedReset), ...refusals.codeInvalid)
    expectPair(await exchange(at.gateway, { ...code, password: user.password }), 200)
  })
})
