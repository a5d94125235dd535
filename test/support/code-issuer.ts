// An identity provider without a login page. It issues authorization codes for users whose claims a test chooses.
import { createHash, randomBytes } from 'node:crypto'
import type { JWTPayload } from 'jose'
import {
  claimsOf,
  type Issuer,
  makeKey,
  paths,
  sendJson,
  signToken,
  startIssuer,
  type TestKey,
} from '../providers/issuer.ts'

/** The claims of a token. Tests can also set invalid claims. The value `undefined` removes a claim. */
export type Claims = Readonly<Record<string, unknown>>

export interface CodeIssuer extends Issuer {
  readonly key: TestKey
  /**
   * Signs a user in, and returns the callback URL to which the provider redirects the browser.
   * @param location the URL to which the gateway has redirected the browser
   * @param claims further claims of the ID token
   */
  consent(location: string, claims?: Claims): URL
  /** Returns an ID token for an app. @param claims further claims */
  idToken(claims?: Claims, header?: Readonly<Record<string, unknown>>): Promise<string>
  /** The claims to add to the UserInfo response of each `sub`. */
  readonly profiles: Map<unknown, object>
}

interface Grant {
  readonly claims: Claims
  readonly redirectUri: string | null
  readonly challenge: string | null
  isUsed: boolean
}

/** @param options `path`: the path of the issuer; `tls`: whether the issuer uses TLS, with the certificate `first` */
export async function startCodeIssuer(options: { path?: string; tls?: boolean } = {}): Promise<CodeIssuer> {
  const key = await makeKey(`key-${randomBytes(4).toString('hex')}`)
  const issuer = await startIssuer([key], options)
  const grants = new Map<string, Grant>()
  const profiles = new Map<unknown, object>()
  issuer.discovery.authorization_response_iss_parameter_supported = true

  const idToken: CodeIssuer['idToken'] = (claims = {}, header = {}) =>
    signToken(key, { ...claimsOf(issuer, Date.now()), jti: random(), ...claims } as JWTPayload, header)

  const opened: CodeIssuer = {
    ...issuer,
    key,
    profiles,
    idToken,
    consent(location, claims = {}) {
      const { searchParams: asked } = new URL(location)
      const code = random()
      grants.set(code, {
        claims: { nonce: asked.get('nonce') ?? '', ...claims },
        redirectUri: asked.get('redirect_uri'),
        challenge: asked.get('code_challenge'),
        isUsed: false,
      })
      const callback = new URL(String(asked.get('redirect_uri')))
      callback.search = String(
        new URLSearchParams({ code, state: asked.get('state') ?? '', iss: issuer.url }),
      )
      return callback
    },
  }

  issuer.responses.set(paths.token, async (request, response) => {
    // The issuer has recorded this request in the same turn of the event loop. So this request is the last in `seen`.
    const body = issuer.seen.at(-1)?.body ?? new URLSearchParams()
    const code = body.get('code') ?? ''
    const grant = grants.get(code)
    const isRight =
      grant !== undefined &&
      !grant.isUsed &&
      body.get('redirect_uri') === grant.redirectUri &&
      body.get('client_secret') === 'secret' &&
      sha256(body.get('code_verifier') ?? '') === grant.challenge
    if (!isRight) return sendJson({ error: 'invalid_grant' }, 400)(request, response)
    grant.isUsed = true
    const tokens = { id_token: await idToken(grant.claims), access_token: code, token_type: 'Bearer' }
    return sendJson(tokens)(request, response)
  })
  issuer.responses.set(paths.userInfo, (request, response) => {
    const { sub = 'person' } = grants.get(request.headers.authorization?.slice(7) ?? '')?.claims ?? {}
    sendJson({ sub, ...profiles.get(sub) })(request, response)
  })
  return opened
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

function random(): string {
  return randomBytes(16).toString('base64url')
}
