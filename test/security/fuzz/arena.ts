// The setup that mutated attacks are sent to: a gateway with many kinds of guards, a lenient upstream, and users.
import { giveKey, newUser, type TestUser } from '../../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../../support/gateway.ts'
import { type ObservedUpstream, startObservedUpstream } from '../observed-upstream.ts'

export interface Arena {
  readonly gateway: TestGateway
  readonly upstream: ObservedUpstream
  /**
   * The values of the placeholders in attacks. The key is the name without brackets, for example `FREE` for `<FREE>`.
   */
  readonly placeholders: ReadonlyMap<string, string>
  /** The users who own the valid credentials, by the name of the credential. */
  readonly owners: ReadonlyMap<string, Caller>
  /** The user with the plan free, whose daily uses are counted. */
  readonly free: Caller
  stop(): Promise<void>
}

export interface Caller {
  readonly id: string
  readonly plan: string
}

/** The path prefixes that require a credential, some with a required plan. */
export const guardedPrefixes: readonly (readonly [prefix: string, plan?: string])[] = [
  ['/api/v1/private'],
  ['/api/v1/daily'],
  ['/api/v1/sockets'],
  ['/api/v1/pro', 'pro'],
]

/** The path prefix of the secret response. The upstream, or nginx in front of it, sends this response. */
export const secretPrefix = '/api/v1/private'

const routes = (upstream: string) => `upstreams:
  app: { targets: ['${upstream}'], connections: 64 }
routes:
  - { name: private, path: /api/v1/private/*, upstream: app }
  - { name: daily, path: /api/v1/daily/*, upstream: app, free_daily: true }
  - { name: pro, path: /api/v1/pro/*, upstream: app, plans: [pro] }
  - { name: sockets, path: /api/v1/sockets/*, upstream: app, websocket: true }
  - { name: optional, path: /api/v1/optional/*, upstream: app, auth: optional }
  - { name: public, path: /public/*, upstream: app, auth: none }
  - { name: rest, path: /*, upstream: app, auth: none }
`

/**
 * Starts the setup.
 * @param reading how the upstream parses requests; `plain` means like Node by default, and `lax` means as leniently as
 * possible
 * @param before a function that starts a server between the gateway and the upstream
 */
export async function openArena(
  stores: Stores,
  reading: 'plain' | 'lax' = 'lax',
  before: (upstream: string) => Promise<{ url: string; stop(): Promise<void> }> = async url => ({
    url,
    stop: async () => {},
  }),
): Promise<Arena> {
  const upstream = await startObservedUpstream(secretPrefix, reading === 'lax' ? 'lax' : 'strict')
  upstream.reading = reading
  const front = await before(upstream.url)
  const gateway = await startGateway(routes(front.url), stores, {
    // The timeouts are short. So an attack that never ends blocks its lane of the campaign only for a short time.
    server: ', timeouts: { headers: 1s, body_idle: 250ms }',
    limits: 'free_daily: 1000000',
  })
  const free = await newUser(gateway)
  const premium = await newUser(gateway, 'premium')
  const pro = await newUser(gateway, 'pro')
  const key = `peage_${'k'.repeat(36)}`
  await giveKey(gateway, premium, key)
  const caller = ({ id }: TestUser, plan: string) => ({ id: String(id), plan })
  return {
    gateway,
    upstream,
    placeholders: new Map([
      ['FREE', free.access],
      ['PREMIUM', premium.access],
      ['PRO', pro.access],
      ['KEY', key],
      ['REFRESH', premium.refresh],
      ['TAMPERED', tampered(premium.access)],
      ['UNSIGNED', unsigned(premium.access)],
    ]),
    owners: new Map([
      ['FREE', caller(free, 'free')],
      ['PREMIUM', caller(premium, 'premium')],
      ['PRO', caller(pro, 'pro')],
      ['KEY', caller(premium, 'premium')],
    ]),
    free: caller(free, 'free'),
    async stop() {
      await gateway.stop()
      await front.stop()
      await upstream.close()
    },
  }
}

/** Replaces the names in angle brackets with their values. @param text an attack in latin1 */
export function filledIn(arena: Arena, text: string): string {
  return text.replace(/<([A-Z]+)>/g, (name, inner: string) => arena.placeholders.get(inner) ?? name)
}

/** Returns the owners of the credentials in an attack. Only their identities may reach the upstream. */
export function callersOf(arena: Arena, text: string): Caller[] {
  return [...text.matchAll(/<([A-Z]+)>/g)].flatMap(([, name = '']) => arena.owners.get(name) ?? [])
}

/** Changes the first character of the signature. A change of the last character might affect only unused bits. */
function tampered(token: string): string {
  const at = token.lastIndexOf('.') + 1
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
}

function unsigned(token: string): string {
  const head = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')
  return `${head}.${token.split('.')[1]}.`
}
