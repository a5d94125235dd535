// Describes the endpoints without authentication: liveness, readiness and metrics.
import type { Operation } from '../openapi/operation.ts'
import { oneOf, record, text } from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'

const mark = oneOf(['ok', 'degraded', 'down'], 'The status.')

const health = record(
  {
    status: mark,
    checks: Type.Record('^.*$', mark, {
      description:
        'The status of each configured store, of the `workers`, and of the `listener` while the gateway stops.',
    }),
    configuration: Type.Optional(
      oneOf(
        ['refused', 'incomplete'],
        '`refused`: the last reload failed and the previous configuration is active. `incomplete`: a worker that did not ' +
          'activate the new configuration in time is being replaced.',
      ),
    ),
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Settings that are not suitable for production, and problems of single workers.',
      }),
    ),
  },
  { title: 'Health', description: 'The readiness of the gateway.' },
)

export const probes = {
  isUp: {
    method: 'GET',
    path: '/healthz',
    id: 'isUp',
    summary: 'Checks that the process is running',
    caller: 'anybody',
    responses: {
      200: {
        description: 'The process is running.',
        body: record({ status: oneOf(['ok'], 'Always `ok`.') }),
      },
    },
    refusals: {},
  },
  isReady: {
    method: 'GET',
    path: '/readyz',
    id: 'isReady',
    summary: 'Checks whether the gateway is ready for requests',
    description: 'Guards need the database. If only Redis is down, the status is `degraded`.',
    caller: 'anybody',
    query: record({
      for: Type.Optional(text('`public` checks only whether the gateway can serve unguarded routes.')),
    }),
    responses: {
      200: { description: 'The gateway is ready. The status is `ok` or `degraded`.', body: health },
      503: { description: 'The gateway is not ready. The status is `down`.', body: health },
    },
    refusals: {},
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    id: 'showMetrics',
    summary: 'Shows the metrics for Prometheus',
    caller: 'anybody',
    responses: {
      200: { description: 'The metrics in the text format of Prometheus.', mediaType: 'text/plain' },
    },
    refusals: {},
  },
} as const satisfies Record<string, Operation>
