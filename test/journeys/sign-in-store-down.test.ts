// Postgres fails during sign-ins. Browsers return to their page, and apps get 503.
import { expect, inject, it } from 'vitest'
import { call } from '../support/client.ts'
import { expectRefusal } from '../support/refusals.ts'
import { type Server, startPostgres } from '../support/servers.ts'
import { describeWithPostgresBinary } from '../support/services.ts'
import {
  begin,
  codeFor,
  exchange,
  expectPair,
  expectReturned,
  newPage,
  newPerson,
  pathOf,
  returnUrl,
  sendIdToken,
  signInStage,
  startPath,
} from '../support/sign-in.ts'

const unavailable = [503, 'service_unavailable', 'Service indisponible'] as const

describeWithPostgresBinary('a sign-in while Postgres is down', () => {
  let postgres: Server
  const at = signInStage({
    openDatabase: () => Promise.reject(new Error('not used')),
    async open() {
      postgres = await startPostgres(inject('postgresBin'))
      return { postgres: postgres.url, redis: '' }
    },
    drop: () => postgres.stop(),
  })

  it('ends with service_unavailable, and succeeds when Postgres is back', async () => {
    const started = [await begin(at.gateway), await begin(at.gateway), await begin(at.gateway)] as const
    const code = await codeFor(at, newPerson())
    const body = { id_token: await at.alpha.idToken(newPerson()) }
    const finish = async ({ browser, location }: (typeof started)[number], gateway = at.gateway) => {
      const { pathname, search } = at.alpha.consent(location, newPerson())
      return browser.get(gateway, pathname + search)
    }
    await postgres.kill()
    // This replica already has the key of the cookies in memory, so it can read the state of the page from the cookie.
    const answer = await finish(started[0])
    expectReturned(answer, 'service_unavailable', started[0].page.parameters.state)
    expect((await begin(at.gateway)).browser.cookies.size).toBe(1)
    // The other replica does not have the key yet, so its response does not contain the state of the page.
    const { cookies } = started[1].browser
    const unread = await finish(started[1], at.other)
    expect([unread.status, unread.headers.get('location')]).toEqual([
      303,
      `${returnUrl}?error=service_unavailable`,
    ])
    expect([unread.headers.get('referrer-policy'), cookies.size]).toEqual(['no-referrer', 1])
    expectRefusal(await call(at.other.url, 'GET', startPath(newPage())), ...unavailable)
    for (const gateway of [at.gateway, at.other]) {
      expectRefusal(await exchange(gateway, code), ...unavailable)
      expectRefusal(await sendIdToken(gateway, body), ...unavailable)
      expect((await call(gateway.url, 'GET', '/api/v1/auth/providers')).status).toBe(200)
      expect((await call(gateway.url, 'GET', pathOf('alpha', 'callback'))).status).toBe(303)
    }
    await postgres.restart()
    await expect
      .poll(
        () =>
          at.gateway.sql('select 1').then(
            () => true,
            () => false,
          ),
        { timeout: 20_000 },
      )
      .toBe(true)
    // The failures used up neither the code nor the ID token, and the browsers can still finish their sign-ins.
    expectPair(await exchange(at.other, code), 201)
    expectPair(await sendIdToken(at.gateway, body), 201)
    for (const each of [started[1], started[2]])
      expect((await finish(each, at.other)).headers.get('location')).toMatch(/\?code=/)
  })
})
