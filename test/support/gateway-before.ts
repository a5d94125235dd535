// Starts one gateway with one upstream before all tests of a suite, and stops them at the end.
import { afterAll, beforeAll } from 'vitest'
import { type Stores, startGateway, type TestGateway } from './gateway.ts'
import { embeddedSetup } from './setups.ts'

interface Startable {
  readonly url: string
  close(): Promise<void>
}

interface Stage<Before extends Startable> {
  gateway: TestGateway
  upstream: Before
  stores: Stores
}

/**
 * Returns an object whose fields are set before the first test.
 * @param yamlOf gets the URL of the upstream, and returns the part of gateway.yaml from `upstreams:` to the end
 */
export function gatewayBefore<Before extends Startable>(
  startUpstream: () => Promise<Before>,
  yamlOf: (upstream: string) => string,
  settings: Parameters<typeof startGateway>[2] = {},
  setup = embeddedSetup,
): Stage<Before> {
  const at = {} as Stage<Before>
  beforeAll(async () => {
    at.stores = await setup.open()
    at.upstream = await startUpstream()
    at.gateway = await startGateway(yamlOf(at.upstream.url), at.stores, settings)
  })
  afterAll(async () => {
    await at.gateway?.stop()
    await at.upstream?.close()
    if (at.stores !== undefined) await setup.drop(at.stores)
  })
  return at
}
