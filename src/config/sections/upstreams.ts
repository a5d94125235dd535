// The schema of the `upstreams` section: the services that requests are forwarded to.
import { Type } from '../../schema/type.ts'
import { formatted, formattedOrZero, NAME_PATTERN, section } from './builders.ts'

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

const defaultWeight = 100

const target = Type.Convert(
  Type.Union(
    [
      formatted('target'),
      section(
        {
          url: formatted('target', { description: 'Scheme, host and port.' }),
          weight: Type.Optional(
            Type.Integer({
              description: 'Its share of the requests beside other targets; 0 takes none.',
              minimum: 0,
              maximum: 1_000,
              default: defaultWeight,
            }),
          ),
        },
        { description: 'With a weight of its own.' },
      ),
    ],
    { title: 'an address such as http://127.0.0.1:9000, or { url, weight }' },
  ),
  named => ({ weight: defaultWeight, ...(typeof named === 'string' ? { url: named } : named) }),
)

const resolve = Type.Convert(
  Type.Union(
    [
      Type.Literal(false),
      section(
        {
          every: Type.Optional(
            formatted('look_up_interval', { description: 'Between two look-ups of a name.', default: '10s' }),
          ),
          most: Type.Optional(
            Type.Integer({
              description: 'Addresses of one name that are used.',
              default: 32,
              minimum: 1,
              maximum: 256,
            }),
          ),
          family: Type.Optional(
            Type.Enum(['auto', 4, 6], {
              description: 'The IP version; auto is 4, and 6 where there is no address of 4.',
              default: 'auto',
            }),
          ),
        },
        { description: 'How names are looked up.' },
      ),
    ],
    {
      title: 'false, or a mapping of every, most and family',
      description:
        'Each address that a target’s name has is used, with connections and health of its own. false: the name is one target, looked up at each connect.',
      default: {},
    },
  ),
  given =>
    given === false ? (false as const) : { every: 10_000, most: 32, family: 'auto' as const, ...given },
)

export const upstream = section(
  {
    targets: Type.Array(target, {
      title: 'a list of at least one address',
      description:
        'Where the service listens: scheme, host and port, with a weight where it is not 100. Requests go to those that are well, in turn.',
      minItems: 1,
    }),
    resolve,
    connection_age: formattedOrZero('age', {
      description:
        'A kept connection takes no new request after this, so that load follows addresses; what is on it goes on. 0: no limit.',
      default: '5m',
    }),
    split_by: Type.Enum(['request', 'user'], {
      description:
        'What goes to one target: each request for itself, or all requests of a user, as long as target, address and weights stay.',
      default: 'request',
    }),
    health: Type.Optional(health),
    timeouts,
    retries: Type.Integer({
      description:
        'How often a request is sent again: of any method where the connection could not be opened and there is another address, of an idempotent one where it broke before a byte of an answer. To another target where there is one.',
      minimum: 0,
      maximum: 10,
      default: 1,
    }),
    circuit_breaker: Type.Optional(circuitBreaker),
    connections: Type.Integer({
      description: 'Connections per address and process; more requests wait up to timeouts.connect.',
      minimum: 1,
      default: 128,
    }),
    connections_per_client: Type.Optional(
      Type.Integer({
        description:
          'Connections per address and process that one user, or one anonymous client address, may hold; then 429. Omitted: a quarter of connections, or no limit below 4 connections.',
        minimum: 1,
      }),
    ),
    tls: Type.Optional(tls),
  },
  { description: 'One service.' },
)

export const upstreams = Type.Record(NAME_PATTERN, upstream, {
  additionalProperties: false,
  description: 'The services behind, by name.',
  default: {},
})
