// Describes the endpoints without authentication: liveness, readiness and metrics.
import type { Operation } from '../openapi/operation.ts'
import { oneOf, record, text } from '../openapi/schema-builders.ts'
import { Type } from '../schema/type.ts'

const mark = oneOf(['ok', 'degraded', 'down'], 'How it is.')

const health = record(
  {
    status: mark,
    checks: Type.Record('^.*$', mark, {
      description:
        'Of each store that is configured, of the workers, and of the `listener` while the gateway stops.',
    }),
    configuration: Type.Optional(
      oneOf(
        ['refused', 'incomplete'],
        '`refused`: the last reload failed and the previous configuration is active. `incomplete`: a worker that did not ' +
          'activate the new configuration in time is being replaced.',
      ),
    ),
    warnings: Type.Optional(
      Type.Array(Type.String(), { description: 'What works, but not as it should in production.' }),
    ),
  },
  { title: 'Health', description: 'Whether the gateway can do its work.' },
)

export const probes = {
  isUp: {
    method: 'GET',
    path: '/healthz',
    id: 'isUp',
    summary: 'Says that the process is up',
    caller: 'anybody',
    responses: { 200: { description: 'It is.', body: record({ status: oneOf(['ok'], 'Always.') }) } },
    refusals: {},
  },
  isReady: {
    method: 'GET',
    path: '/readyz',
    id: 'isReady',
    summary: 'Says whether guards can decide',
    description: 'Redis lost is `degraded`: the database alone is the record.',
    caller: 'anybody',
    query: record({
      for: Type.Optional(text('`public` asks only whether unguarded routes can be served.')),
    }),
    responses: {
      200: { description: 'They can.', body: health },
      503: { description: 'They cannot.', body: health },
    },
    refusals: {},
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    id: 'showMetrics',
    summary: 'Shows the metrics, for Prometheus',
    caller: 'anybody',
    responses: { 200: { description: 'In the text format of Prometheus.', mediaType: 'text/plain' } },
    refusals: {},
  },
} as const satisfies Record<string, Operation>
