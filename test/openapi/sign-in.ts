// Sends requests for sign-ins with identity providers. Together, they get every response that the OpenAPI document
// describes for these sign-ins.
import { expect } from 'vitest'
import { newUser } from '../support/client.ts'
import type { CodeIssuer } from '../support/code-issuer.ts'
import type { TestGateway } from '../support/gateway.ts'
import { newPage, newPerson, publicUrl, returnUrl, startPath } from '../support/sign-in.ts'
import type { Answer } from './checker.ts'

type Drive = (
  to: TestGateway,
  method: string,
  pattern: string,
  sent?: { headers?: Record<string, string>; body?: unknown },
  target?: string,
) => Promise<Answer>

const prefix = '/api/v1/auth'
const ofProviders = `${prefix}/providers/{id}`
/** A provider that does not respond. */
const dead = 'http://127.0.0.1:1'

/**
 * Returns the settings of a gateway with several providers. `alpha` works, `closed` registers no new users, and `dead`
 * does not respond.
 */
export function signInSettings({ url }: CodeIssuer, closed: CodeIssuer): { server: string; auth: string } {
  const client = 'client_id: client, client_secret: secret'
  return {
    server: `, public_url: '${publicUrl}'`,
    auth: `, return_urls: ['${returnUrl}'], providers: {
      alpha: { issuer: '${url}', ${client} },
      closed: { issuer: '${closed.url}', ${client}, register: false },
      google: { issuer: 'https://accounts.google.com', client_id: a },
      keycloak: { issuer: 'https://sso.example.com/realms/staff', client_id: b },
      dead: { issuer: '${dead}', ${client} } }`,
  }
}

interface Stage {
  /** A gateway with normal limits. */
  gateway: TestGateway
  /** A gateway that allows a client three sign-ins per minute, and one wrong password in five minutes. */
  tight: TestGateway
  /** A gateway without return URLs. */
  withoutPages: TestGateway
  alpha: CodeIssuer
  closed: CodeIssuer
}

export function createSignInDriver({ gateway, tight, withoutPages, alpha, closed }: Stage, drive: Drive) {
  const start = (to: TestGateway, page = newPage(), name = 'alpha') =>
    drive(to, 'GET', `${ofProviders}/start`, {}, startPath(page, name))
  const exchange = (body: object, to = gateway) => drive(to, 'POST', `${prefix}/exchange`, { body })
  const token = (body: object, name = 'alpha', to = gateway) =>
    drive(to, 'POST', `${ofProviders}/token`, { body }, `${prefix}/providers/${name}/token`)

  /** Signs a person in as a browser does. @returns the request body for the exchange of the code */
  async function codeFor(to: TestGateway, claims: object, name = 'alpha') {
    const page = newPage()
    const begun = await start(to, page, name)
    const cookie = String([begun.headers['set-cookie']].flat().at(-1)).split(';')[0] ?? ''
    const issuer = name === 'alpha' ? alpha : closed
    const { pathname, search } = issuer.consent(String(begun.headers.location), { ...claims })
    const returned = await drive(
      to,
      'GET',
      `${ofProviders}/callback`,
      { headers: { cookie } },
      pathname + search,
    )
    const code = new URL(String(returned.headers.location)).searchParams.get('code')
    return { code, code_verifier: page.verifier }
  }

  return {
    async describeResponses(): Promise<void> {
      const [user, person] = [await newUser(gateway), newPerson()]
      const unverified = newPerson({ email_verified: false })
      await drive(gateway, 'GET', `${prefix}/providers`)
      await drive(gateway, 'GET', `${ofProviders}/start`)
      for (const path of ['start', 'callback'])
        await drive(gateway, 'GET', `${ofProviders}/${path}`, {}, `${prefix}/providers/none/${path}`)
      await exchange({})
      for (const path of ['start', 'callback']) await drive(withoutPages, 'GET', `${ofProviders}/${path}`)
      await exchange({}, withoutPages)
      for (const known of [false, true])
        expect((await exchange(await codeFor(gateway, person))).status).toBe(known ? 200 : 201)
      await exchange(await codeFor(gateway, unverified))
      await exchange(await codeFor(gateway, newPerson(), 'closed'))
      const code = await codeFor(gateway, newPerson({ email: user.email }))
      for (const more of [{}, { password: 'wrong' }]) await exchange({ ...code, ...more })

      const app = newPerson()
      for (const claims of [app, app, { ...app, aud: 'other' }, unverified])
        await token({ id_token: await alpha.idToken(claims) })
      await token({})
      await token({ id_token: await closed.idToken(newPerson()) }, 'closed')
      await token({ id_token: 'x' }, 'none')
      await token({ id_token: await alpha.idToken() }, 'dead')
      const id_token = await alpha.idToken(newPerson({ email: user.email }))
      for (const more of [{}, { password: 'wrong' }]) await token({ id_token, ...more })
    },

    async describeLimits(): Promise<void> {
      const user = await newUser(tight)
      const code = await codeFor(tight, newPerson({ email: user.email }))
      for (const password of ['wrong', 'wrong']) await exchange({ ...code, password }, tight)
      for (let i = 0; i < 3; i += 1) await token({}, 'alpha', tight)
      await start(tight)
    },

    /** @param fresh a gateway that has not yet read the key for the sign-in cookies from Postgres */
    async describeWithoutStore(fresh: TestGateway): Promise<void> {
      await start(fresh)
      await exchange({ code: 'x', code_verifier: 'x' })
      await token({ id_token: await alpha.idToken(newPerson()) })
    },
  }
}
