// The `upstreams` section: the services that requests are forwarded to.

import { formatted, NAME_PATTERN, section } from './builders.ts'
import { Type } from './type.ts'

const timeouts = section(
  {
    connect: formatted('duration', {
      description: 'For a connection, the wait for a free one included.',
      default: '1s',
    }),
    response: formatted('duration', { description: 'To the answer’s header fields.', default: '30s' }),
    idle: formatted('duration', { description: 'For the answer’s body to stand still.', default: '5m' }),
  },
  { description: 'How long the service may take.', default: {} },
)

const health = section(
  {
    path: formatted('request_path', {
      description: 'What is asked for with GET; a 2xx or 3xx says that all is well.',
    }),
    interval: formatted('duration', { description: 'Between two checks of a target.', default: '5s' }),
    timeout: formatted('duration', { description: 'For a check, the connection included.', default: '1s' }),
    unhealthy_after: Type.Integer({
      description: 'Failed checks in a row after which a target is sent nothing.',
      minimum: 1,
      default: 3,
    }),
    healthy_after: Type.Integer({
      description: 'Good checks in a row after which it is sent requests again.',
      minimum: 1,
      default: 1,
    }),
  },
  { description: 'Checks every target regularly. Omitted: no checks.' },
)

const circuitBreaker = section(
  {
    failures: formatted('percent', {
      description:
        'The part of requests without an answer, within 10 s, at which a target is sent nothing more.',
      default: '50%',
    }),
    of_at_least: Type.Integer({
      description: 'Requests within 10 s before that is reckoned.',
      minimum: 1,
      default: 20,
    }),
    open_for: formatted('duration', {
      description: 'Until one request at a time finds out whether it answers again.',
      default: '10s',
    }),
  },
  { description: 'Spares a target that does not answer, and its clients the wait. Omitted: none.' },
)

const tls = section(
  {
    ca: Type.Optional(
      Type.String({
        title: 'the name of a file with certificates in PEM',
        description: 'Authorities that may have signed its certificate. Omitted: those that Node knows.',
        minLength: 1,
      }),
    ),
    server_name: Type.Optional(
      formatted('host', {
        description: 'The name asked for (SNI) and expected in its certificate. Omitted: that of the target.',
      }),
    ),
  },
  { description: 'For https targets.' },
)

export const upstream = section(
  {
    targets: Type.Array(formatted('target'), {
      title: 'a list of at least one address',
      description:
        'Where the service listens: scheme, host and port. Requests go to those that are well, in turn.',
      minItems: 1,
    }),
    health: Type.Optional(health),
    timeouts,
    retries: Type.Integer({
      description:
        'How often a request of an idempotent method is sent again where no byte of an answer came, to another target where there is one.',
      minimum: 0,
      maximum: 10,
      default: 1,
    }),
    circuit_breaker: Type.Optional(circuitBreaker),
    connections: Type.Integer({
      description: 'Connections per target and process; more requests wait up to timeouts.connect.',
      minimum: 1,
      default: 128,
    }),
    tls: Type.Optional(tls),
  },
  { description: 'One service.' },
)

export const upstreams = Type.Record(NAME_PATTERN, upstream, {
  additionalProperties: false,
  description: 'The services behind, by name.',
  default: {},
})
