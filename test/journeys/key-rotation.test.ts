// Signing keys in the database change while the replicas run. No valid token is refused.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createKeyStore } from '../../src/identity/keys/key-store.ts'
import { generatePrivateJwk } from '../../src/identity/keys/signing-key.ts'
import { call, login, newUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { kidOf, startKeyLoad } from '../support/key-load.ts'
import { describeOverSetups } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

describeOverSetups('keys in the database', setup => {
  let stores: Stores
  let upstream: Upstream
  let replicas: TestGateway[] = []
  let first: TestGateway

  beforeAll(async () => {
    stores = await setup.open()
    upstream = await startUpstream()
    const routes = `upstreams: { echo: { targets: ['${upstream.url}'] } }
routes:
  - { path: /any/*, upstream: echo }
  - { path: /asserted, upstream: echo, identity_assertion: true }`
    const count = stores.postgres === '' ? 1 : 2
    replicas = await Promise.all(Array.from({ length: count }, () => startGateway(routes, stores)))
    first = replicas[0] ?? expect.unreachable()
  })
  afterAll(async () => {
    await Promise.all(replicas.map(replica => replica.stop()))
    await upstream?.close()
    if (stores !== undefined) await setup.drop(stores)
  })

  const store = () => createKeyStore(first.backing.database)
  const signingKid = async (user: { email: string; password: string }, at: TestGateway) =>
    kidOf((await login(at.url, user.email, user.password)).access)

  async function publishedAt({ url }: TestGateway): Promise<string[]> {
    const { body } = await call(url, 'GET', '/.well-known/jwks.json')
    return (body.keys as { kid: string }[]).map(({ kid }) => kid)
  }

  /** Publishes a key that will sign in an hour, and waits until every replica has it. */
  async function publish(): Promise<string> {
    const { kid, text } = await generatePrivateJwk('EdDSA')
    await store().addSigning(kid, text, 60 * 60_000)
    for (const replica of replicas) {
      await expect.poll(() => publishedAt(replica), { timeout: 1_000, interval: 5 }).toContain(kid)
    }
    return kid
  }

  it('are shared, so tokens that one replica issues are valid on the other', async () => {
    const [other = first] = replicas.slice(1)
    const user = await newUser(first)
    expect((await call(other.url, 'GET', '/any/x', { token: user.access })).status).toBe(200)
    const refresh = { body: { refresh_token: user.refresh } }
    const { body } = await call(other.url, 'POST', '/api/v1/auth/refresh', refresh)
    const token = String(body.access_token)
    expect((await call(first.url, 'GET', '/any/x', { token })).status).toBe(200)
    expect(await publishedAt(other)).toEqual(await publishedAt(first))
  })

  it('are published by every replica within a second, but do not sign before their start time', async () => {
    const user = await newUser(first)
    const old = kidOf(user.access)
    const kid = await publish()
    for (const replica of replicas) {
      expect((await publishedAt(replica))[0]).toBe(old)
      expect(await signingKid(user, replica)).toBe(old)
    }
    for (const replica of replicas) replica.clock.at += 60 * 60_000
    for (const replica of replicas) expect(await signingKid(user, replica)).toBe(kid)
    for (const replica of replicas) replica.clock.at -= 60 * 60_000
    await store().letSign(old, 0)
    for (const replica of replicas) {
      await expect.poll(() => signingKid(user, replica), { timeout: 1_000, interval: 5 }).toBe(old)
    }
  })

  it('can be rotated ten times under load, and no valid token is refused', async () => {
    const load = await startKeyLoad(replicas, 6)
    const [old = ''] = load.kids
    const turns = [old]
    for (let round = 0; round < 10; round += 1) {
      const kid = await publish()
      await store().letSign(kid, 0)
      await load.allHave(kid)
      const gone = turns.at(-1) ?? ''
      const row = (await store().all()).find(each => each.kid === gone)
      expect(await store().remove(gone, row?.signs_from ?? null)).toBe(true)
      turns.push(kid)
    }
    await load.stop()
    expect(load.refused).toEqual([])
    expect([...load.kids].filter(kid => turns.includes(kid))).toEqual(turns)
  })

  it('verify no tokens on any replica, not even cached tokens, later than 1 s after their removal', async () => {
    const user = await newUser(first)
    const gone = kidOf(user.access)
    for (const { url } of replicas) {
      expect((await call(url, 'GET', '/any/x', { token: user.access })).status).toBe(200)
    }
    await store().letSign(await publish(), 0)
    const row = (await store().all()).find(({ kid }) => kid === gone)
    await store().remove(gone, row?.signs_from ?? null)
    for (const { url } of replicas) {
      const status = async () => (await call(url, 'GET', '/any/x', { token: user.access })).status
      await expect.poll(status, { timeout: 1_000, interval: 5 }).toBe(401)
      const refused = await call(url, 'POST', '/api/v1/auth/refresh', {
        body: { refresh_token: user.refresh },
      })
      expect([refused.status, refused.headers.get('x-peage-error')]).toEqual([401, 'refresh_token_invalid'])
      expect(await publishedAt({ url } as TestGateway)).not.toContain(gone)
    }
  })

  it('sign assertions only 310 s after their publication, so that every cached JWKS contains them', async () => {
    const user = await newUser(first)
    // This makes the signing key look as if it had been published a day ago.
    await first.sql("update signing_keys set created_at = created_at - interval '1 day', signs_from = now()")
    await expect.poll(() => publishedAt(first)).not.toHaveLength(0)
    const old = await signingKid(user, first)
    const assertedBy = async () => {
      upstream.received.length = 0
      await call(first.url, 'GET', '/asserted', { token: user.access })
      return kidOf(String(upstream.received.at(-1)?.headers['x-peage-assertion']))
    }
    expect(await assertedBy()).toBe(old)
    const copied = await publishedAt(first)
    const kid = await publish()
    await store().letSign(kid, 0)
    await expect.poll(() => signingKid(user, first), { timeout: 1_000, interval: 5 }).toBe(kid)
    expect(copied).not.toContain(kid)
    first.clock.at += 305_000
    expect(await assertedBy()).toBe(old)
    first.clock.at += 5_000
    expect(await assertedBy()).toBe(kid)
    first.clock.at -= 310_000
  })
})
