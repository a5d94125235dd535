// The schema of the `routes` section: which requests are forwarded, for which callers, and to which upstream.
import { Type } from '../../schema/type.ts'
import { formatted, NAME_PATTERN, ownName, planReference, rate, scopeName, section } from './builders.ts'
import { cors } from './cors.ts'

const changes = (of: string) =>
  section(
    {
      set: Type.Record('^.*$', Type.String(), {
        title: 'a mapping of header names to values',
        description: `Headers to set in ${of}. They replace headers with the same name.`,
        default: {},
      }),
      remove: Type.Array(Type.String(), {
        title: 'a list of header names',
        description: `Headers to remove from ${of}.`,
        default: [],
      }),
    },
    { description: `Changes to the headers of ${of}.`, default: {} },
  )

const headers = section(
  { request: changes('the request'), response: changes('the upstream’s response') },
  { description: 'Headers to set or remove. Names are not case-sensitive.' },
)

/** Returns the name and the cost of a route's quota. If the file contains only the name, the cost is 1. */
export function readQuota(quota: string | { name: string; cost?: number }): { name: string; cost: number } {
  return typeof quota === 'string' ? { name: quota, cost: 1 } : { cost: 1, ...quota }
}

export const route = section(
  {
    name: Type.Optional(
      Type.String({
        title: 'a name of letters, digits, _ . and -',
        description: 'Name in logs and metrics. Omitted: a name derived from the path.',
        pattern: NAME_PATTERN,
      }),
    ),
    path: formatted('path', {
      description:
        'Path pattern of literal segments, :param segments, and an optional /* at the end. For example, /news/* also matches /news.',
    }),
    methods: Type.Optional(
      Type.Array(formatted('method'), {
        title: 'a list of at least one method',
        description: 'HTTP methods of the route. GET includes HEAD. Omitted: all methods.',
        minItems: 1,
      }),
    ),
    hosts: Type.Array(formatted('route_host'), {
      description:
        'Hosts that the route is limited to. *.example.com matches every subdomain of example.com. Empty: every host.',
      default: [],
    }),
    upstream: Type.Optional(
      Type.String({
        title: 'the name of an upstream',
        description:
          'Upstream that receives the requests. Required without server.forward_auth. Omitted: the route is only for forward auth.',
      }),
    ),
    auth: Type.Enum(['required', 'optional', 'none'], {
      description:
        'Authentication. required: only with a valid credential. optional: anonymous without a credential. none: credentials are not read.',
      default: 'required',
    }),
    plans: Type.Optional(
      Type.Array(planReference(), {
        title: 'a list of at least one plan; omit the key for every plan',
        description: 'Plans that may use the route. Omitted: every plan.',
        minItems: 1,
      }),
    ),
    scope: Type.Optional(
      scopeName('Scope that an API key with scopes needs. Omitted: API keys with scopes are refused.'),
    ),
    bearer_only: Type.Boolean({
      description: 'Accept only access tokens, and no API keys.',
      default: false,
    }),
    verified: Type.Boolean({
      description: 'Allow only users with a verified email.',
      default: false,
    }),
    free_daily: Type.Boolean({
      description: 'Count each request of a user with plan free as a daily use (limits.free_daily).',
      default: false,
    }),
    quota: Type.Optional(
      Type.Convert(
        Type.Union(
          [
            ownName('Name of a quota.'),
            section(
              {
                name: ownName('Name of a quota.'),
                cost: Type.Optional(
                  Type.Integer({
                    description: 'Number of uses that are counted for one request.',
                    minimum: 1,
                    maximum: 1_000,
                    default: 1,
                  }),
                ),
              },
              { description: 'Quota and cost of a request.' },
            ),
          ],
          {
            title: 'the name of a quota, or { name: …, cost: … }',
            description: 'Quota that counts each request of a user. The plans state its allowances.',
          },
        ),
        readQuota,
      ),
    ),
    strip_prefix: Type.Optional(
      formatted('path', {
        description:
          'Literal segments to remove from the start of the path, before the request is forwarded.',
      }),
    ),
    rewrite: Type.Optional(
      formatted('rewrite', {
        description:
          'Path to send to the upstream instead of the requested path. :param and * are replaced with the text that they matched.',
      }),
    ),
    headers: Type.Optional(headers),
    forward_credentials: Type.Boolean({
      description: 'Forward the Authorization and X-API-Key headers to the upstream.',
      default: false,
    }),
    identity_assertion: Type.Boolean({
      description:
        'Add X-Peage-Assertion, a JWT that identifies the caller to the upstream, signed with the gateway’s key.',
      default: false,
    }),
    forward_email: Type.Boolean({ description: 'Add the x-user-email header.', default: false }),
    allow_in_path: Type.Array(
      Type.Enum(['encoded_slash', 'semicolon', 'trailing_dot', 'double_encoding', 'double_slash']),
      {
        title: 'a list of encoded_slash, semicolon, trailing_dot, double_encoding and double_slash',
        description: 'Ambiguous parts to allow in paths. Servers interpret them in different ways.',
        default: [],
      },
    ),
    timeout: Type.Optional(
      formatted('duration', {
        description:
          'Maximum time until the response headers arrive. Omitted: timeouts.response of the upstream.',
      }),
    ),
    max_body: Type.Optional(
      formatted('size', {
        description:
          'Maximum size of a request body. The gateway refuses a larger body with 413. Omitted: no limit.',
      }),
    ),
    rate_limit: Type.Optional(
      rate('Requests per user, or per client address of anonymous callers. Omitted or 0: no limit.'),
    ),
    cors: Type.Optional(cors),
    websocket: Type.Boolean({
      description: 'Allow WebSocket handshakes. The same guards apply.',
      default: false,
    }),
  },
  { description: 'One route.' },
)

export const routes = Type.Array(route, {
  description: 'Routes of the gateway. Requests that match no route are refused.',
  default: [],
})
