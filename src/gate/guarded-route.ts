// A route made ready to serve: what is known of it when the configuration is loaded is not looked up for each request.
import type { Upstream } from '../upstream/targets/upstreams.ts'
import type { GuardChain } from './guards/chain.ts'
import type { Route } from './routing/route.ts'

export interface GuardedRoute extends Route {
  readonly guards: GuardChain
  readonly upstream: Upstream
}
