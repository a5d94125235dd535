// The setup that the corpus expects: a gateway with a guarded and a public prefix, and an upstream that records
// requests.
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { newUser, type TestUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import type { Setup } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { expectInvariants, type Watched } from './invariants.ts'
import { type ObservedUpstream, startObservedUpstream } from './observed-upstream.ts'
import type { RawAnswer } from './raw-client.ts'

export interface Stage extends Watched {
  gateway: TestGateway
  upstream: ObservedUpstream
  user: TestUser
  other: TestUser
  /** Checks the invariants I1 to I5 for the current test. With `mayFail`, one 500 response is allowed. */
  holds(answers: readonly RawAnswer[], allow?: { mayFail?: boolean; method?: string }): Promise<void>
}

interface Layout {
  /** Whether there is also a public route `/*`, through which attacks could bypass the guarded prefix. */
  catchAll?: boolean
  settings?: Parameters<typeof startGateway>[2]
  /** More routes in YAML. */
  more?: string
}

/**
 * Starts the setup before the first test, and stops it after the last test. The returned object is empty until the
 * setup has started.
 */
export function stage(setup: Setup, layout: Layout = {}): Stage {
  const stage = {} as Stage
  let stores: Stores | undefined
  beforeAll(async () => {
    stores = await setup.open()
    stage.upstream = await startObservedUpstream(guarded)
    stage.gateway = await startGateway(routesOf(stage.upstream.url, layout), stores, layout.settings)
    stage.user = await newUser(stage.gateway, 'premium')
    stage.other = await newUser(stage.gateway, 'pro')
    stage.plans = new Map([
      [String(stage.user.id), 'premium'],
      [String(stage.other.id), 'pro'],
    ])
    stage.expectedFailures = 0
    stage.holds = (answers, allow) => expectInvariants(stage, answers, guarded, allow)
  })
  beforeEach(() => {
    stage.upstream.seen.length = 0
    stage.upstream.answer = undefined
  })
  afterAll(async () => {
    await stage.gateway?.stop()
    await stage.upstream?.close()
    if (stores !== undefined) await setup.drop(stores)
  })
  return stage
}

function routesOf(upstream: string, { catchAll = false, more = '' }: Layout): string {
  return `upstreams:
  app: { targets: ['${upstream}'] }
routes:
  - { name: private, path: ${guarded}/*, upstream: app }
  - { name: public, path: /public/*, upstream: app, auth: none }
${catchAll ? '  - { name: rest, path: /*, upstream: app, auth: none }\n' : ''}${more}`
}
