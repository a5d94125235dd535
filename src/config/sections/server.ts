// The schema of the `server` section: the listener for clients.
import { Type } from '../../schema/type.ts'
import { formatted, section } from './builders.ts'
import { cors } from './cors.ts'

const timeouts = section(
  {
    headers: formatted('duration', {
      description: 'For a request’s header fields to arrive.',
      default: '10s',
    }),
    body_idle: formatted('duration', {
      description:
        'For a request’s body to stand still, or to bring less than 1 KiB in 30 s, before the connection is closed.',
      default: '30s',
    }),
    keep_alive: formatted('duration', {
      description: 'For an idle connection to be kept. Longer than that of the balancer in front.',
      default: '65s',
    }),
  },
  { description: 'How long clients may take.', default: {} },
)

const log = section(
  {
    level: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
      description: 'The least severe level that is written.',
      default: 'info',
    }),
    requests: Type.Boolean({ description: 'One line for every request.', default: true }),
  },
  { description: 'JSON lines on standard output.', default: {} },
)

const workers = Type.Union([Type.Integer({ minimum: 1, maximum: 1_024 }), Type.Literal('auto')], {
  title: 'a number of processes, or auto for one per core',
  description:
    'Processes that serve clients on the one port; auto is one per core. More than one need Postgres and Redis.',
  default: 1,
})

const fileName = (description: string) => Type.String({ title: 'a file name', minLength: 1, description })

const tls = section(
  {
    cert: fileName('A file with the certificate in PEM, or the chain, its own first.'),
    key: fileName('A file with its private key in PEM, not encrypted.'),
  },
  { description: 'Serve HTTPS. Both files are read again when they change. Omit for plain HTTP.' },
)

export const server = section(
  {
    listen: formatted('listen', {
      description: 'Where clients connect. Port 0 lets the system choose.',
      default: '0.0.0.0:8080',
    }),
    workers,
    trusted_proxies: Type.Array(formatted('network'), {
      description: 'Addresses and networks whose X-Forwarded-* is believed. Nobody by default.',
      default: [],
    }),
    drain_timeout: formatted('duration', {
      description: 'For the whole stop after SIGTERM; requests in flight get four fifths of it.',
      default: '10s',
    }),
    timeouts,
    log,
    tls: Type.Optional(tls),
    cors: Type.Optional(cors),
  },
  { description: 'The listener that clients reach.', default: {} },
)
