// The schema of the `upstreams` section: the services that requests are forwarded to.
import { Type } from '../../schema/type.ts'
import { formatted, formattedOrZero, NAME_PATTERN, section } from './builders.ts'

const timeouts = section(
  {
    connect: formatted('duration', {
      description: 'Maximum time to get a connection, including the wait for a free connection.',
      default: '1s',
    }),
    response: formatted('duration', {
      description: 'Maximum time until the response headers arrive.',
      default: '30s',
    }),
    idle: formatted('duration', {
      description: 'Maximum pause while a response body arrives.',
      default: '5m',
    }),
  },
  { description: 'Time limits for the upstream.', default: {} },
)

const health = section(
  {
    path: formatted('request_path', {
      description: 'Path that the gateway requests with GET. A 2xx or 3xx response means healthy.',
    }),
    interval: formatted('duration', { description: 'Time between two checks of a target.', default: '5s' }),
    timeout: formatted('duration', {
      description: 'Maximum duration of a check, including the connection.',
      default: '1s',
    }),
    unhealthy_after: Type.Integer({
      description: 'Number of failed checks in a row after which a target receives no requests.',
      minimum: 1,
      default: 3,
    }),
    healthy_after: Type.Integer({
      description: 'Number of successful checks in a row after which a target receives requests again.',
      minimum: 1,
      default: 1,
    }),
  },
  { description: 'Regular health checks of every target. Omitted: no checks.' },
)

const circuitBreaker = section(
  {
    failures: formatted('percent', {
      description:
        'If at least this percentage of the requests within 10 s gets no response, the target receives no more requests.',
      default: '50%',
    }),
    of_at_least: Type.Integer({
      description: 'Minimum number of requests within 10 s before the circuit breaker can react.',
      minimum: 1,
      default: 20,
    }),
    open_for: formatted('duration', {
      description:
        'How long the circuit breaker stops requests to the target. Afterwards, one request tests whether the target responds again.',
      default: '10s',
    }),
  },
  {
    description:
      'Circuit breaker: stops requests to a target that does not respond, so that clients do not wait. Omitted: none.',
  },
)

const tls = section(
  {
    ca: Type.Optional(
      Type.String({
        title: 'the name of a file with certificates in PEM',
        description:
          'PEM file with the certificate authorities for the targets. Omitted: the authorities that Node.js trusts.',
        minLength: 1,
      }),
    ),
    server_name: Type.Optional(
      formatted('host', {
        description:
          'Name that is sent as SNI and must be in the certificate. Omitted: the host of the target.',
      }),
    ),
  },
  { description: 'TLS settings for https targets.' },
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
              description:
                'Share of the requests, relative to the other targets. 0: the target receives no requests.',
              minimum: 0,
              maximum: 1_000,
              default: defaultWeight,
            }),
          ),
        },
        { description: 'Target with a weight.' },
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
            formatted('look_up_interval', {
              description: 'Time between two lookups of a name.',
              default: '10s',
            }),
          ),
          most: Type.Optional(
            Type.Integer({
              description: 'Maximum number of addresses to use per name.',
              default: 32,
              minimum: 1,
              maximum: 256,
            }),
          ),
          family: Type.Optional(
            Type.Enum(['auto', 4, 6], {
              description: 'IP version. auto: IPv4, or IPv6 if the name has no IPv4 address.',
              default: 'auto',
            }),
          ),
        },
        { description: 'Settings for the lookup of names.' },
      ),
    ],
    {
      title: 'false, or a mapping with every, most and family',
      description:
        'By default, each address of a target’s name has its own connections and health. false: the name is one target, looked up for each connection.',
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
        'Addresses of the service: scheme, host and port, with an optional weight (default: 100). Healthy targets receive requests in turn.',
      minItems: 1,
    }),
    resolve,
    connection_age: formattedOrZero('age', {
      description:
        'Maximum age of a connection. An older connection gets no new requests, so that the load can move to new addresses. Requests in progress continue. 0: no limit.',
      default: '5m',
    }),
    split_by: Type.Enum(['request', 'user'], {
      description:
        'Assignment to targets. request: each request is assigned separately. user: all requests of a user go to one target, as long as the targets, their addresses and their weights stay the same.',
      default: 'request',
    }),
    health: Type.Optional(health),
    timeouts,
    retries: Type.Integer({
      description:
        'Maximum number of retries of a request, to another target if possible. Any request is retried if no connection could be opened and there is another address. An idempotent request is also retried if the connection broke before the first byte of a response.',
      minimum: 0,
      maximum: 10,
      default: 1,
    }),
    circuit_breaker: Type.Optional(circuitBreaker),
    connections: Type.Integer({
      description:
        'Maximum number of connections per address and process. Further requests wait up to timeouts.connect.',
      minimum: 1,
      default: 128,
    }),
    connections_per_client: Type.Optional(
      Type.Integer({
        description:
          'Maximum number of connections per address and process for one user, or for one anonymous client address. Further requests get 429. Omitted: a quarter of the setting connections. If connections is below 4, there is no limit per client.',
        minimum: 1,
      }),
    ),
    tls: Type.Optional(tls),
  },
  { description: 'One upstream.' },
)

export const upstreams = Type.Record(NAME_PATTERN, upstream, {
  additionalProperties: false,
  description: 'Upstreams, by name.',
  default: {},
})
