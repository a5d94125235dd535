// Where mutations are fired: a gateway with every kind of guard, an upstream as lax as any, users with credentials.
import { giveKey, newUser, type TestUser } from '../../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../../support/gateway.ts'
import { type ObservedUpstream, startObservedUpstream } from '../observed-upstream.ts'

export interface Arena {
  readonly gateway: TestGateway
  readonly upstream: ObservedUpstream
  /** What the names in angle brackets of an attack stand for. */
  readonly placeholders: ReadonlyMap<string, string>
  /** Those that are valid, and whose they are. */
  readonly owners: ReadonlyMap<string, Caller>
  /** The user whose uses are counted. */
  readonly free: Caller
  stop(): Promise<void>
}

export interface Caller {
  readonly id: string
  readonly plan: string
}

/** What nobody reaches without a credential, and the only plan that does, where there is one. */
export const guardedPrefixes: readonly (readonly [prefix: string, plan?: string])[] = [
  ['/api/v1/private'],
  ['/api/v1/daily'],
  ['/api/v1/sockets'],
  ['/api/v1/pro', 'pro'],
]

/** Where the upstream, or the nginx in front of it, keeps its secret. */
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
 * @param before what stands between the gateway and the upstream: its URL, given the upstream's
 * @param reading how the upstream reads what it gets: as node does, or with every leniency at once
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
    // Short, so that a request which never ends does not hold its lane.
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

/** The bytes of an attack with its names filled in. @param text latin1 */
export function filledIn(arena: Arena, text: string): string {
  return text.replace(/<([A-Z]+)>/g, (name, inner: string) => arena.placeholders.get(inner) ?? name)
}

/** Who may be told of to the upstream: the owners of the credentials that the attack carries. */
export function callersOf(arena: Arena, text: string): Caller[] {
  return [...text.matchAll(/<([A-Z]+)>/g)].flatMap(([, name = '']) => arena.owners.get(name) ?? [])
}

/** The first character of the signature is another one: its last may hold bits that nobody reads. */
function tampered(token: string): string {
  const at = token.lastIndexOf('.') + 1
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
}

function unsigned(token: string): string {
  const head = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')
  return `${head}.${token.split('.')[1]}.`
}
