// The `routes` section: what is let through, to whom, and where it goes (CONTRACT §2, §4, §6).
import Type from 'typebox'
import { formatted, NAME_PATTERN, section } from './terms.ts'

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
    forward_credentials: Type.Boolean({
      description: 'Passes Authorization and X-API-Key on to the upstream.',
      default: false,
    }),
    forward_email: Type.Boolean({ description: 'Adds x-user-email.', default: false }),
    timeout: Type.Optional(
      formatted('duration', {
        description: 'To the answer’s header fields. Omitted: timeouts.response of the upstream.',
      }),
    ),
    max_body: Type.Optional(
      formatted('size', { description: 'A longer body is refused with 413. Omitted: no limit.' }),
    ),
  },
  { description: 'One declared path.' },
)

export const routes = Type.Array(route, { description: 'What is let through.', default: [] })
