// The schema of the `routes` section: which requests are forwarded, for which callers, and to which upstream.
import { Type } from '../../schema/type.ts'
import { formatted, NAME_PATTERN, rate, section } from './builders.ts'
import { cors } from './cors.ts'

const changes = (of: string) =>
  section(
    {
      set: Type.Record('^.*$', Type.String(), {
        title: 'a mapping of header names to texts',
        description: `Header fields of ${of} that are added, in place of those of that name.`,
        default: {},
      }),
      remove: Type.Array(Type.String(), {
        title: 'a list of header names',
        description: `Header fields of ${of} that are left out.`,
        default: [],
      }),
    },
    { description: `What is changed in the header fields of ${of}.`, default: {} },
  )

const headers = section(
  { request: changes('the request'), response: changes('the upstream’s answer') },
  { description: 'Header fields that are set or removed, in any letter case.' },
)

export const route = section(
  {
    name: Type.Optional(
      Type.String({
        title: 'a name of letters, digits, _ . and -',
        description: 'Stands in logs. Omitted: made from the path.',
        pattern: NAME_PATTERN,
      }),
    ),
    path: formatted('path', {
      description: 'Literal segments, :param segments, and a trailing /* that matches the bare prefix too.',
    }),
    methods: Type.Optional(
      Type.Array(formatted('method'), {
        title: 'a list of at least one method',
        description: 'Omitted: all. GET covers HEAD.',
        minItems: 1,
      }),
    ),
    hosts: Type.Array(formatted('host'), {
      description: 'Hosts it is limited to. Empty: every host.',
      default: [],
    }),
    upstream: Type.String({ title: 'the name of an upstream', description: 'The upstream that it goes to.' }),
    auth: Type.Enum(['required', 'optional', 'none'], {
      description:
        'required: a valid credential. optional: anonymous where there is none. none: no credential is read.',
      default: 'required',
    }),
    plans: Type.Optional(
      Type.Array(Type.Enum(['free', 'premium', 'pro']), {
        title: 'a list of at least one plan (free, premium, pro); omit it for every plan',
        description: 'The plans that are let through. Omitted: every plan.',
        minItems: 1,
      }),
    ),
    verified: Type.Boolean({
      description: 'Lets only users through whose email is verified.',
      default: false,
    }),
    free_daily: Type.Boolean({
      description: 'Users of plan free spend one of limits.free_daily with every request.',
      default: false,
    }),
    strip_prefix: Type.Optional(
      formatted('path', {
        description: 'Literal segments cut off the front before the upstream sees the path.',
      }),
    ),
    rewrite: Type.Optional(
      formatted('rewrite', {
        description: 'The path sent instead; :param and * stand for what they matched.',
      }),
    ),
    headers: Type.Optional(headers),
    forward_credentials: Type.Boolean({
      description: 'Passes Authorization and X-API-Key on to the upstream.',
      default: false,
    }),
    identity_assertion: Type.Boolean({
      description: 'Adds X-Peage-Assertion: who calls, signed with the gateway’s key for the upstream.',
      default: false,
    }),
    forward_email: Type.Boolean({ description: 'Adds x-user-email.', default: false }),
    allow_in_path: Type.Array(
      Type.Enum(['encoded_slash', 'semicolon', 'trailing_dot', 'double_encoding', 'double_slash']),
      {
        title: 'a list of encoded_slash, semicolon, trailing_dot, double_encoding and double_slash',
        description: 'What its paths may hold although servers read it in different ways.',
        default: [],
      },
    ),
    timeout: Type.Optional(
      formatted('duration', {
        description: 'To the answer’s header fields. Omitted: timeouts.response of the upstream.',
      }),
    ),
    max_body: Type.Optional(
      formatted('size', { description: 'A longer body is refused with 413. Omitted: no limit.' }),
    ),
    rate_limit: Type.Optional(
      rate('Requests per user, per client address where anonymous. Omitted or 0: off.'),
    ),
    cors: Type.Optional(cors),
    websocket: Type.Boolean({
      description: 'Lets WebSocket handshakes through, behind the same guards.',
      default: false,
    }),
  },
  { description: 'One declared path.' },
)

export const routes = Type.Array(route, { description: 'What is let through.', default: [] })
