// The `upstreams` section: the services behind.
import Type from 'typebox'
import { formatted, NAME_PATTERN, section } from './terms.ts'

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

export const upstream = section(
  {
    targets: Type.Array(formatted('target'), {
      title: 'a list of exactly one address (several come with a later version)',
      description: 'Where the service listens: scheme, host and port.',
      minItems: 1,
      maxItems: 1,
    }),
    timeouts,
    connections: Type.Integer({
      description: 'Connections per target and process; more requests wait up to timeouts.connect.',
      minimum: 1,
      default: 128,
    }),
  },
  { description: 'One service.' },
)

export const upstreams = Type.Record(Type.String({ pattern: NAME_PATTERN }), upstream, {
  additionalProperties: false,
  description: 'The services behind, by name.',
  default: {},
})
