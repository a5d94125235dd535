// Lists the active routes, their guards in order, and the health of their targets.
import { activeGuards, guardNames } from '../../config/active-guards.ts'
import type { Plans } from '../../config/plans.ts'
import type { RouteConfig } from '../../config/sections/schema.ts'
import type { Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import type { TargetStatus } from '../../upstream/targets/target-status.ts'
import { type AdminDependencies, type AdminEndpoint, admissionRefusals } from './admin-endpoint.ts'

export const target = terms.record(
  {
    url: terms.text('The scheme, host and port of the target.'),
    healthy: Type.Boolean({ description: '`true` if the target receives requests.' }),
    checks: terms.nullable(
      terms.oneOf(
        ['passing', 'failing'],
        'The result of the health checks. `null` if no health checks are configured.',
      ),
    ),
    circuit: terms.nullable(
      terms.oneOf(
        ['closed', 'half_open', 'open'],
        'The state of the circuit breaker. With `open`, the target receives no requests. `null` if no circuit breaker is configured.',
      ),
    ),
    avoided: Type.Boolean({
      description: '`true` if the gateway prefers other targets because this target did not respond.',
    }),
  },
  {
    title: 'Target',
    description:
      'A target of an upstream. If there are several workers, each field shows the worst value of all workers.',
  },
)

const route = terms.record(
  {
    name: terms.text('The name of the route in logs and metrics.'),
    path: terms.text('The path pattern of the route.'),
    methods: terms.nullable(
      Type.Array(Type.String(), { description: 'The methods. `null` means all methods.' }),
    ),
    hosts: Type.Array(Type.String(), {
      description:
        'The hosts. `*.example.com` means every subdomain of `example.com`. An empty list means every host.',
    }),
    auth: terms.oneOf(
      ['required', 'optional', 'none'],
      '`required`, `optional` or `none`, as configured for the route.',
    ),
    guards: Type.Array(terms.oneOf(guardNames, 'The name of the guard.'), {
      description: 'The active guards, in the order in which they run.',
    }),
    scope: terms.nullable(
      terms.text(
        'The scope that an API key with scopes needs. With `null`, a route with authentication refuses API keys with scopes.',
      ),
    ),
    bearer_only: Type.Boolean({ description: '`true` if the route accepts only access tokens.' }),
    plans: terms.nullable(
      Type.Array(terms.plan, { description: 'The plans that may use the route. `null` means every plan.' }),
    ),
    free_daily: Type.Boolean({
      description: '`true` if a request by a user of plan `free` counts as one daily use.',
    }),
    quota: terms.nullable(
      terms.record({
        name: terms.text('The name of the quota.'),
        cost: terms.count('The number of uses that are counted for one request.'),
      }),
    ),
    rate_limit: terms.nullable(
      terms.record({
        limit: terms.count('The maximum number of requests per window.'),
        window_seconds: Type.Number({ description: 'The length of the window in seconds.' }),
      }),
    ),
    max_body: terms.nullable(terms.count('The maximum size of a request body in bytes.')),
    websocket: Type.Boolean({ description: '`true` if the route accepts WebSocket handshakes.' }),
    upstream: terms.nullable(
      terms.record({
        name: terms.text(
          'The name of the upstream. `upstream` is `null` if the route is only for forward auth.',
        ),
        healthy: Type.Boolean({ description: '`true` if at least one target is healthy.' }),
        targets: Type.Array(target),
      }),
    ),
  },
  { title: 'Route', description: 'A declared route.' },
)

export const listRoutes = {
  method: 'GET',
  path: '/admin/v1/routes',
  id: 'listRoutes',
  summary: 'Lists the declared routes with their guards and the health of their targets',
  caller: 'operator',
  roles: ['read', 'support'],
  responses: {
    200: {
      description: 'The routes, in the order of the file.',
      body: terms.record({ routes: Type.Array(route) }),
    },
  },
  refusals: admissionRefusals,
} as const satisfies Operation

export function createRouteListing({ routes, plans, targetStatuses }: AdminDependencies): AdminEndpoint {
  return {
    operation: listRoutes,
    async handle() {
      const statuses = await targetStatuses()
      return { routes: routes().map(declared => toResponse(declared, plans(), statuses)) }
    },
  }
}

function toResponse(
  declared: RouteConfig,
  configured: Plans,
  targetStatuses: readonly TargetStatus[],
): object {
  const { name, path, methods, hosts, auth, scope, bearer_only, plans, free_daily, quota } = declared
  const { rate_limit, max_body, websocket } = declared
  const targets = targetStatuses.filter(({ upstream }) => upstream === declared.upstream).map(toTarget)
  return {
    name,
    path,
    methods: methods ?? null,
    hosts,
    auth,
    guards: activeGuards(declared, configured),
    scope: scope ?? null,
    bearer_only,
    plans: plans ?? null,
    free_daily,
    quota: quota ?? null,
    rate_limit: rate_limit
      ? { limit: rate_limit.limit, window_seconds: Math.ceil(rate_limit.windowMs / 1000) }
      : null,
    max_body: max_body ?? null,
    websocket,
    upstream:
      declared.upstream === undefined
        ? null
        : { name: declared.upstream, healthy: targets.some(({ healthy }) => healthy), targets },
  }
}

export function toTarget({ target: url, isHealthy, checks, circuit, isEjected }: TargetStatus) {
  return { url, healthy: isHealthy, checks, circuit, avoided: isEjected }
}
