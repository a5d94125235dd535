// Shows the state of the gateway and its last 15 minutes, for the console.
import type { Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import type { WorkerHealth } from '../health.ts'
import { stepSeconds } from '../overview.ts'
import { type AdminDependencies, type AdminEndpoint, admissionRefusals } from './admin-endpoint.ts'
import { target, toTarget } from './list-routes.ts'

const status = terms.oneOf(['ok', 'degraded', 'down'], 'How it is.')
const counts = (description: string) =>
  Type.Array(terms.nullable(terms.count('In the step.')), {
    description: `${description} \`null\`: not known.`,
  })
const numbers = (description: string) =>
  Type.Array(terms.nullable(Type.Number()), { description: `${description} \`null\`: nothing is known.` })

export const showOverview = {
  method: 'GET',
  path: '/admin/v1/overview',
  id: 'showOverview',
  summary: 'Shows the last 15 minutes in steps of 10 s, of all workers together',
  caller: 'operator',
  roles: ['read', 'support'],
  responses: {
    200: {
      description: 'Each list has an entry for each of `at`.',
      body: terms.record({
        step: Type.Integer({ description: 'Seconds.' }),
        at: Type.Array(Type.Integer(), { description: 'Epoch seconds at which each step ended.' }),
        requests: counts('Requests that ended.'),
        errors: counts('Of these, answered 5xx.'),
        refused: Type.Record('^.*$', counts('Refused by a guard.'), { description: 'By guard.' }),
        p50_ms: numbers('Half of the requests took no longer.'),
        p99_ms: numbers('99 of 100 requests took no longer.'),
        cache_hit_rate: numbers('The part of look-ups of identities that memory answered.'),
        upstreams: Type.Array(
          terms.record({
            name: terms.text('As declared.'),
            healthy: Type.Boolean({ description: 'Whether any of its targets is.' }),
            targets: Type.Array(target),
          }),
        ),
        stores: Type.Record('^.*$', status, { description: 'As in `/readyz`.' }),
        warnings: Type.Array(Type.String(), { description: 'As in `/readyz`.' }),
        workers: Type.Array(terms.record({ id: Type.Integer({ description: 'From 1.' }), state: status }), {
          description: 'The processes that serve clients.',
        }),
        reloads: terms.record({
          success: terms.count('Since the start.'),
          failure: terms.count('Since the start.'),
          last: terms.nullable(
            terms.record({
              at: terms.instant('When.'),
              ok: Type.Boolean({ description: 'Whether it was taken.' }),
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

/** @param worker undefined for this process, which is running because it sends the response */
function stateOf(worker: WorkerHealth | undefined): 'ok' | 'degraded' | 'down' {
  if (worker === undefined) return 'ok'
  if (worker.pid === undefined || worker.stores === undefined) return 'down'
  const { postgres, redis = true } = worker.stores
  return postgres && redis ? 'ok' : 'degraded'
}
