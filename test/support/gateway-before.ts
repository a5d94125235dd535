// A gateway before one upstream, for a whole suite.
import { afterAll, beforeAll } from 'vitest'
import { embedded, startGateway, type TestGateway } from './gateway.ts'

interface Startable {
  readonly url: string
  close(): Promise<void>
}

/**
 * Filled in before the first test.
 * @param yamlOf writes gateway.yaml for the upstream's URL
 */
export function gatewayBefore<Before extends Startable>(
  startUpstream: () => Promise<Before>,
  yamlOf: (upstream: string) => string,
  settings: Parameters<typeof startGateway>[2] = {},
): { upstream: Before; gateway: TestGateway } {
  const at = {} as { upstream: Before; gateway: TestGateway }
  beforeAll(async () => {
    at.upstream = await startUpstream()
    at.gateway = await startGateway(yamlOf(at.upstream.url), embedded, settings)
  })
  afterAll(async () => {
    await at.gateway?.stop()
    await at.upstream?.close()
  })
  return at
}
