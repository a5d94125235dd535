// Rotates key files in the documented order. First, all replicas get the new key as the second key of the file. Then
// the new key becomes the first key. Last, the old key is removed.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { generatePrivateJwk } from '../../src/identity/keys/signing-key.ts'
import { call, newUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { type KeyLoad, kidOf, startKeyLoad } from '../support/key-load.ts'
import { describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

describeWithServices('key files on two replicas', () => {
  let folder: string
  let stores: Stores
  let upstream: Upstream
  let replicas: TestGateway[]
  const kids: Record<string, string> = {}

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'peage-key-files-'))
    stores = await services.open()
    upstream = await startUpstream()
    for (const name of ['old', 'new']) {
      const { kid, text } = await generatePrivateJwk('ES256')
      kids[name] = kid
      await writeFile(join(folder, name), text)
    }
    replicas = await Promise.all([start('old'), start('old')])
  })
  afterAll(async () => {
    await Promise.all(replicas.map(replica => replica.stop()))
    await upstream?.close()
    if (stores !== undefined) await services.drop(stores)
    await rm(folder, { recursive: true })
  })

  function start(...names: string[]): Promise<TestGateway> {
    const files = names.map(name => JSON.stringify(join(folder, name)))
    return startGateway(routes(upstream.url), stores, { auth: `, keys: [${files}]` })
  }

  /**
   * Replaces the replicas one after the other, like a rollout. Each old replica stops only after its last request has
   * ended.
   */
  async function rollOut(load: KeyLoad, ...names: string[]): Promise<void> {
    for (const [i, before] of replicas.entries()) {
      replicas[i] = await start(...names)
      await load.settled()
      await before.stop()
    }
  }

  it('can be added in second place, moved to first place and removed without the refusal of a valid token', async () => {
    const user = await newUser(replicas[0] as TestGateway)
    const load = await startKeyLoad(replicas, 4)
    await rollOut(load, 'old', 'new')
    expect([...load.kids]).toEqual([kids.old])
    await rollOut(load, 'new', 'old')
    await load.allHave(String(kids.new))
    const any = (token: string) =>
      Promise.all(replicas.map(async ({ url }) => (await call(url, 'GET', '/any/x', { token })).status))
    expect(await any(user.access)).toEqual([200, 200])
    await rollOut(load, 'new')
    await load.stop()
    expect(load.refused).toEqual([])
    expect(kidOf(user.access)).toBe(kids.old)
    expect(await any(user.access)).toEqual([401, 401])
  })
})
