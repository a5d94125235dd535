// A compiled route: its guards and its upstream are resolved when the configuration is loaded, not per request.
import type { Upstream } from '../upstream/targets/upstreams.ts'
import type { GuardChain } from './guards/chain.ts'
import type { Route } from './routing/route.ts'

export interface GuardedRoute extends Route {
  readonly guards: GuardChain
  readonly upstream: Upstream
}
