// Lists the active routes, their guards in order, and the health of their targets.
import { activeGuards, guardNames } from '../../config/active-guards.ts'
import type { RouteConfig } from '../../config/sections/schema.ts'
import type { Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import type { TargetStatus } from '../../upstream/targets/target-status.ts'
import { type AdminDependencies, type AdminEndpoint, admissionRefusals } from './admin-endpoint.ts'

export const target = terms.record(
  {
    url: terms.text('Scheme, host and port.'),
    healthy: Type.Boolean({ description: 'Whether requests go to it.' }),
    checks: terms.nullable(
      terms.oneOf(['passing', 'failing'], 'Of its health checks; `null` where there are none.'),
    ),
    circuit: terms.nullable(
      terms.oneOf(
        ['closed', 'half_open', 'open'],
        'Of its circuit breaker, `open` where it is sent nothing; `null` where there is none.',
      ),
    ),
    avoided: Type.Boolean({
      description: 'Whether other targets are preferred, since it could not be connected to.',
    }),
  },
  {
    title: 'Target',
    description: 'An address of an upstream; with several workers, as the worst-off sees it.',
  },
)

const route = terms.record(
  {
    name: terms.text('As it stands in logs and metrics.'),
    path: terms.text('As declared.'),
    methods: terms.nullable(Type.Array(Type.String(), { description: '`null`: all.' })),
    hosts: Type.Array(Type.String(), { description: 'Empty: every host.' }),
    auth: terms.oneOf(['required', 'optional', 'none'], 'Whether a credential is asked for.'),
    guards: Type.Array(terms.oneOf(guardNames, 'A guard.'), {
      description: 'In the order in which they decide.',
    }),
    plans: terms.nullable(Type.Array(terms.plan, { description: '`null`: every plan.' })),
    free_daily: Type.Boolean({ description: 'Whether users of plan free spend one of `limits.free_daily`.' }),
    rate_limit: terms.nullable(
      terms.record({
        limit: terms.count('Requests a window.'),
        window_seconds: Type.Number({ description: 'Its length.' }),
      }),
    ),
    max_body: terms.nullable(terms.count('Bytes.')),
    websocket: Type.Boolean({ description: 'Whether WebSocket handshakes are let through.' }),
    upstream: terms.record({
      name: terms.text('As declared.'),
      healthy: Type.Boolean({ description: 'Whether any of its targets is.' }),
      targets: Type.Array(target),
    }),
  },
  { title: 'Route', description: 'A declared route.' },
)

export const listRoutes = {
  method: 'GET',
  path: '/admin/v1/routes',
  id: 'listRoutes',
  summary: 'Lists the declared routes with their guards, upstream targets and their health',
  caller: 'operator',
  roles: ['read', 'support'],
  responses: {
    200: { description: 'In the order of the file.', body: terms.record({ routes: Type.Array(route) }) },
  },
  refusals: admissionRefusals,
} as const satisfies Operation

export function createRouteListing({ routes, targetStatuses }: AdminDependencies): AdminEndpoint {
  return {
    operation: listRoutes,
    async handle() {
      const statuses = await targetStatuses()
      return { routes: routes().map(declared => toResponse(declared, statuses)) }
    },
  }
}

function toResponse(declared: RouteConfig, targetStatuses: readonly TargetStatus[]): object {
  const { name, path, methods, hosts, auth, plans, free_daily, rate_limit, max_body, websocket } = declared
  const targets = targetStatuses.filter(({ upstream }) => upstream === declared.upstream).map(toTarget)
  return {
    name,
    path,
    methods: methods ?? null,
    hosts,
    auth,
    guards: activeGuards(declared),
    plans: plans ?? null,
    free_daily,
    rate_limit: rate_limit ? { limit: rate_limit.limit, window_seconds: rate_limit.windowMs / 1000 } : null,
    max_body: max_body ?? null,
    websocket,
    upstream: {
      name: declared.upstream,
      healthy: targets.some(({ healthy }) => healthy),
      targets,
    },
  }
}

export function toTarget({ target: url, isHealthy, checks, circuit, isEjected }: TargetStatus) {
  return { url, healthy: isHealthy, checks, circuit, avoided: isEjected }
}
