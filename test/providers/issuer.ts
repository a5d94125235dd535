// A small identity provider on loopback. Tests can replace each of its documents and responses.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import type { ProviderConfig } from '../../src/config/sections/schema.ts'
import { createProvider, type Provider } from '../../src/providers/provider.ts'
import { first } from '../support/certificates.ts'

export interface TestKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

export interface SeenRequest {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  /** The form parameters in the body. */
  readonly body: URLSearchParams
}

type Respond = (request: IncomingMessage, response: ServerResponse) => void

export interface Issuer {
  readonly url: string
  /** The discovery document. A test may change it, and also the key set `jwks`. */
  readonly discovery: Record<string, unknown>
  readonly jwks: { keys: JWK[] }
  /** Handlers by path. The handler of a path responds instead of the document at this path. */
  readonly responses: Map<string, Respond>
  /** The requests, in the order received. */
  readonly seen: SeenRequest[]
  /** The number of open connections. */
  readonly open: () => number
  /** The number of requests to a path. */
  count(path: string): number
  /** Returns settings with which the gateway uses this provider. */
  config(settings?: Partial<ProviderConfig>): ProviderConfig
  close(): Promise<void>
}

export const paths = {
  discovery: '/.well-known/openid-configuration',
  keys: '/keys',
  token: '/token',
  userInfo: '/userinfo',
}

export async function makeKey(kid: string, alg = 'ES256'): Promise<TestKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

export async function startIssuer(
  keys: readonly TestKey[],
  { tls = false, path = '' } = {},
): Promise<Issuer> {
  const responses = new Map<string, Respond>()
  const seen: SeenRequest[] = []
  const jwks = { keys: keys.map(({ jwk }) => jwk) }
  const discovery: Record<string, unknown> = {}
  const documents: Record<string, object> = { [paths.discovery]: discovery, [paths.keys]: jwks }

  const listener: RequestListener = async (request, response) => {
    const requested = new URL(request.url ?? '', 'http://issuer').pathname.slice(path.length)
    const body = new URLSearchParams(await text(request).catch(() => ''))
    seen.push({ path: requested, headers: request.headers, body })
    const document = documents[requested]
    const respond = responses.get(requested)
    if (respond !== undefined) respond(request, response)
    else if (document !== undefined) sendJson(document)(request, response)
    else response.writeHead(404).end()
  }
  const server = tls
    ? createTlsServer({ cert: first.cert, key: first.key }, listener)
    : createServer(listener)
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  const url = origin + path
  Object.assign(discovery, {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: url + paths.token,
    userinfo_endpoint: url + paths.userInfo,
    jwks_uri: url + paths.keys,
    id_token_signing_alg_values_supported: ['RS256', 'ES256', 'HS256', 'none'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  })
  return {
    url,
    discovery,
    jwks,
    responses,
    seen,
    open: () => sockets.size,
    count: wanted => seen.filter(request => request.path === wanted).length,
    config: settings => ({
      name: 'test',
      label: 'Test',
      issuer: url,
      client_id: 'client',
      client_secret: 'secret',
      audiences: [],
      scopes: ['openid', 'email'],
      domains: [],
      link: true,
      register: true,
      ...settings,
    }),
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

export function sendJson(document: unknown, status = 200): Respond {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  }
}

/** Signs claims, even if they are invalid. A claim or a header member with the value undefined is left out. */
export function signToken(
  key: Pick<TestKey, 'kid' | 'alg' | 'privateKey'>,
  claims: JWTPayload,
  header: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
    .sign(key.privateKey)
}

/** Returns the claims of a valid ID token. @param nowMs milliseconds since the epoch */
export function claimsOf(issuer: Pick<Issuer, 'url'>, nowMs: number, claims: JWTPayload = {}): JWTPayload {
  const now = Math.floor(nowMs / 1_000)
  return { iss: issuer.url, aud: 'client', sub: 'person', iat: now, exp: now + 3_600, ...claims }
}

/** A clock that tests can move. It starts at the real time, because openid-client uses the real time. */
export class MovableClock {
  #ms = Math.floor(Date.now() / 1_000) * 1_000

  now(): number {
    return this.#ms
  }

  move(ms: number): void {
    this.#ms += ms
  }
}

/** Creates the provider object of the gateway, and records the outcomes of the requests that it sends. */
export function openProvider(
  config: ProviderConfig,
  clock = new MovableClock(),
): { readonly provider: Provider; readonly clock: MovableClock; readonly outcomes: string[] } {
  const outcomes: string[] = []
  const onRequest = (outcome: string) => void outcomes.push(outcome)
  return { provider: createProvider({ config, clock, onRequest, ca: first.cert }), clock, outcomes }
}
