// The schema of the `server` section: the listener for clients.
import { Type } from '../../schema/type.ts'
import { formatted, section } from './builders.ts'
import { cors } from './cors.ts'

const timeouts = section(
  {
    headers: formatted('duration', {
      description: 'Maximum time for the headers of a request to arrive.',
      default: '10s',
    }),
    body_idle: formatted('duration', {
      description:
        'Maximum pause while a request body arrives. The connection is also closed if less than 1 KiB arrives in 30 s.',
      default: '30s',
    }),
    keep_alive: formatted('duration', {
      description:
        'Time that an idle connection stays open. Choose a longer time than the idle timeout of the load balancer in front of the gateway.',
      default: '65s',
    }),
  },
  { description: 'Time limits for clients.', default: {} },
)

const log = section(
  {
    level: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
      description: 'Minimum level of the messages in the log.',
      default: 'info',
    }),
    requests: Type.Boolean({ description: 'Log one line per request.', default: true }),
  },
  { description: 'Log, as JSON lines on standard output.', default: {} },
)

const workers = Type.Union([Type.Integer({ minimum: 1, maximum: 1_024 }), Type.Literal('auto')], {
  title: 'a number of processes, or auto for one per core',
  description:
    'Number of processes that serve clients on the same port. auto: one per core. More than one process needs Postgres and Redis.',
  default: 1,
})

const fileName = (description: string) => Type.String({ title: 'a file name', minLength: 1, description })

const tls = section(
  {
    cert: fileName('PEM file with the certificate, or with the chain. The server certificate comes first.'),
    key: fileName('PEM file with the private key, without a passphrase.'),
  },
  {
    description:
      'HTTPS for clients. The gateway reads both files again when they change. Omit the section for plain HTTP.',
  },
)

const forwardAuth = section(
  {
    from: Type.Array(formatted('network'), {
      title: 'a list of at least one IP address or CIDR',
      description:
        'Addresses and networks of the proxies that may ask whether to forward a request. The address of the connection is checked, not a header.',
      minItems: 1,
    }),
    path: formatted('literal_path', {
      description: 'Path at which proxies ask whether to forward a request.',
      default: '/.peage/authorize',
    }),
  },
  {
    description:
      'Forward auth: nginx, Traefik, Caddy or Envoy ask the gateway whether to forward a request, and forward it themselves. Omit the section to switch forward auth off.',
  },
)

export const server = section(
  {
    listen: formatted('listen', {
      description: 'Address of the client listener. With port 0, the system chooses a port.',
      default: '0.0.0.0:8080',
    }),
    public_url: Type.Optional(
      formatted('public_url', {
        description:
          'Origin where browsers reach the gateway: https, or http to loopback. Required for auth.return_urls.',
      }),
    ),
    workers,
    language: Type.Enum(['fr', 'en'], {
      description: 'Language of the fields error and message in the responses of the gateway.',
      default: 'fr',
    }),
    trusted_proxies: Type.Array(formatted('network'), {
      description:
        'Addresses and networks of the proxies whose X-Forwarded-* headers are trusted. Empty: none.',
      default: [],
    }),
    forward_auth: Type.Optional(forwardAuth),
    drain_timeout: formatted('duration', {
      description:
        'Maximum duration of the shutdown after SIGTERM. Requests in progress get four fifths of this time.',
      default: '10s',
    }),
    timeouts,
    log,
    tls: Type.Optional(tls),
    cors: Type.Optional(cors),
  },
  { description: 'Client listener.', default: {} },
)
