// The schema of the `admin` section: the second listener, its tokens, and their roles.
import { Type } from '../../schema/type.ts'
import { formatted, NAME_PATTERN, section } from './builders.ts'

/** The roles of admin tokens. docs/admin-api.md lists what each role may do. */
export const operatorRoles = ['all', 'support', 'read', 'billing'] as const

export type OperatorRole = (typeof operatorRoles)[number]

export interface TokenConfig {
  readonly token: string
  readonly may: OperatorRole
}

const token = Type.Convert(
  Type.Union(
    [
      formatted('token'),
      section(
        {
          token: formatted('token', { description: 'The bearer token; an empty one is none.' }),
          may: Type.Enum(operatorRoles, {
            description:
              'What it is good for: everything; reading and helping users; reading; users’ plans. See docs/admin-api.md.',
          }),
        },
        { description: 'With a role.' },
      ),
    ],
    { title: 'a token, or { token, may }' },
  ),
  (given): TokenConfig => (typeof given === 'string' ? { token: given, may: 'all' } : given),
)

export const admin = section(
  {
    listen: formatted('listen', {
      description: 'Where operators connect. Keep it off public networks.',
      default: '127.0.0.1:8081',
    }),
    token: formatted('token', {
      description:
        'Bearer token of the admin API; empty is none. Without any token the API answers 403, and only /healthz, /readyz and /metrics are served, no console either.',
      default: '',
    }),
    tokens: Type.Record(NAME_PATTERN, token, {
      additionalProperties: false,
      description:
        'Several bearer tokens, each under a name of its own, and with a role where it may not do everything; an empty one is none.',
      default: {},
    }),
    console: Type.Boolean({
      description: 'Serve the console, a page for people, at /console. It takes a token to sign in.',
      default: true,
    }),
    allow_from: Type.Optional(
      Type.Array(formatted('network'), {
        title: 'a list of addresses and networks, at least one',
        minItems: 1,
        description:
          'Addresses and networks that may call, but for /healthz, /readyz and /metrics; behind a trusted proxy both it and its client. Omitted: everybody.',
      }),
    ),
  },
  { description: 'The second listener: health, metrics, accounts. Omit the section to switch it off.' },
)
