// Compiles a route from the given configuration keys. All other keys have defaults.
import type { RouteConfig } from '../../src/config/sections/schema.ts'
import { compileRoute, type Route } from '../../src/gate/routing/route.ts'

export function routeWith(declared: Partial<RouteConfig>): Route {
  return compileRoute({
    name: 'r',
    path: '/*',
    hosts: [],
    upstream: 'u',
    auth: 'none',
    bearer_only: false,
    verified: false,
    free_daily: false,
    forward_credentials: false,
    forward_email: false,
    identity_assertion: false,
    allow_in_path: [],
    websocket: false,
    ...declared,
  })
}
