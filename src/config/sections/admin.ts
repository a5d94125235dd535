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
          token: formatted('token', { description: 'Bearer token. Empty: the entry is ignored.' }),
          may: Type.Enum(operatorRoles, {
            description:
              'Role of the token. all: everything. support: read, and help users. read: read only. billing: read users and change their plan. See docs/admin-api.md.',
          }),
        },
        { description: 'Token with a role.' },
      ),
    ],
    { title: 'a token, or { token, may }' },
  ),
  (given): TokenConfig => (typeof given === 'string' ? { token: given, may: 'all' } : given),
)

export const admin = section(
  {
    listen: formatted('listen', {
      description: 'Address of the admin listener. Keep it off public networks.',
      default: '127.0.0.1:8081',
    }),
    token: formatted('token', {
      description:
        'Bearer token of the admin API. Empty: no token. Without any token, only /healthz, /readyz and /metrics are available. The API responds with 403, and there is no console.',
      default: '',
    }),
    tokens: Type.Record(NAME_PATTERN, token, {
      additionalProperties: false,
      description:
        'Named bearer tokens of the admin API. A token without a role may do everything. An empty token is ignored.',
      default: {},
    }),
    console: Type.Boolean({
      description: 'Serve the web console at /console. Operators sign in with a token.',
      default: true,
    }),
    allow_from: Type.Optional(
      Type.Array(formatted('network'), {
        title: 'a list of at least one address or network',
        minItems: 1,
        description:
          'Addresses and networks that may use the admin listener, except /healthz, /readyz and /metrics. If operators connect through a trusted proxy, list the addresses of both the proxy and the operators. Omitted: all addresses.',
      }),
    ),
  },
  {
    description:
      'Admin listener with health, metrics, admin API and console. Omit the section to turn it off.',
  },
)
