// Shows the state of the gateway, and figures of the last 15 minutes, for the console.
import type { Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import type { WorkerHealth } from '../health.ts'
import { stepSeconds } from '../overview.ts'
import { type AdminDependencies, type AdminEndpoint, admissionRefusals } from './admin-endpoint.ts'
import { target, toTarget } from './list-routes.ts'

const status = terms.oneOf(['ok', 'degraded', 'down'], 'The status.')
const counts = (description: string) =>
  Type.Array(terms.nullable(terms.count('The number of requests in the step.')), {
    description: `${description} \`null\` if unknown.`,
  })
const numbers = (description: string) =>
  Type.Array(terms.nullable(Type.Number()), {
    description: `${description} \`null\` if unknown or without requests.`,
  })

export const showOverview = {
  method: 'GET',
  path: '/admin/v1/overview',
  id: 'showOverview',
  summary: 'Shows the state of the gateway, and figures of the last 15 minutes in steps of 10 s',
  caller: 'operator',
  roles: ['read', 'support'],
  responses: {
    200: {
      description: 'The totals of all workers. Each list of numbers has one entry for each entry of `at`.',
      body: terms.record({
        step: Type.Integer({ description: 'The length of a step in seconds.' }),
        at: Type.Array(Type.Integer(), { description: 'The end of each step, in epoch seconds.' }),
        requests: counts('Completed requests.'),
        errors: counts('Requests with a 5xx response.'),
        refused: Type.Record('^.*$', counts('Requests that the guard refused.'), {
          description: 'Refused requests by guard.',
        }),
        p50_ms: numbers('The median response time (p50) in milliseconds.'),
        p99_ms: numbers('The 99th percentile of the response time (p99) in milliseconds.'),
        cache_hit_rate: numbers('The hit rate of the user cache, from 0 to 1.'),
        upstreams: Type.Array(
          terms.record({
            name: terms.text('The name of the upstream.'),
            healthy: Type.Boolean({ description: '`true` if at least one target is healthy.' }),
            targets: Type.Array(target),
          }),
        ),
        stores: Type.Record('^.*$', status, { description: 'The status of each store, as in `/readyz`.' }),
        warnings: Type.Array(Type.String(), { description: 'The warnings of `/readyz`.' }),
        workers: Type.Array(
          terms.record({
            id: Type.Integer({ description: 'The number of the process, counted from 1.' }),
            state: status,
          }),
          {
            description: 'The processes that serve clients.',
          },
        ),
        reloads: terms.record({
          success: terms.count('Successful reloads since the start.'),
          failure: terms.count('Failed reloads since the start.'),
          last: terms.nullable(
            terms.record({
              at: terms.instant('The time of the reload.'),
              ok: Type.Boolean({ description: '`true` if the file was applied.' }),
            }),
          ),
        }),
      }),
    },
  },
  refusals: admissionRefusals,
} as const satisfies Operation

export function createOverviewEndpoint(dependencies: AdminDependencies): AdminEndpoint {
  const { history, upstreamNames, targetStatuses, health, workers, configuration } = dependencies
  return {
    operation: showOverview,
    async handle() {
      const [statuses, { checks, warnings = [] }, workerHealths] = await Promise.all([
        targetStatuses(),
        health.readiness(),
        workers?.(),
      ])
      const { workers: _workers, listener: _listener, ...stores } = checks
      const last = configuration.lastReload()
      return {
        step: stepSeconds,
        ...history.series(),
        upstreams: upstreamNames().map(name => {
          const targets = statuses.filter(({ upstream }) => upstream === name).map(toTarget)
          return { name, healthy: targets.some(({ healthy }) => healthy), targets }
        }),
        stores,
        warnings,
        workers: (workerHealths ?? [undefined]).map((one, index) => ({ id: index + 1, state: stateOf(one) })),
        reloads: { ...configuration.counts(), last: last && { at: last.at, ok: last.ok } },
      }
    },
  }
}

/**
 * @param worker the health of a worker; undefined if there are no workers, because this process serves requests itself
 */
function stateOf(worker: WorkerHealth | undefined): 'ok' | 'degraded' | 'down' {
  if (worker === undefined) return 'ok'
  if (worker.pid === undefined || worker.stores === undefined) return 'down'
  const { postgres, redis = true } = worker.stores
  return postgres && redis ? 'ok' : 'degraded'
}
