// The schema of `auth.providers`: the identity providers that users can sign in with.
import { Type } from '../../schema/type.ts'
import { formatted, PLAN_PATTERN, section } from './builders.ts'

const entry = (title: string) => Type.String({ title, minLength: 1 })

export const provider = section(
  {
    label: Type.Optional(
      Type.String({
        description: 'Text for a sign-in button. Omitted: the name of the provider.',
        minLength: 1,
      }),
    ),
    issuer: formatted('issuer', {
      description:
        'Issuer of OpenID Connect Discovery: https, or http to loopback. The discovery document and the ID tokens must contain exactly this text.',
    }),
    client_id: Type.String({
      description: 'ID of the client at the provider. Empty: the provider is ignored.',
      default: '',
    }),
    client_secret: Type.String({
      description: 'Secret of the client at the provider. Empty: a public client, without authentication.',
      default: '',
    }),
    audiences: Type.Array(Type.String(), {
      description:
        'Further client IDs whose ID tokens are accepted, for example of apps. Empty entries are ignored.',
      default: [],
    }),
    scopes: Type.Array(entry('a scope'), {
      description: 'Scopes to request from the provider. They must contain openid.',
      default: ['openid', 'email'],
    }),
    prompt: Type.Optional(
      Type.Enum(['login', 'select_account', 'consent'], {
        description: 'Page that the provider shows the user each time. Omitted: the provider decides.',
      }),
    ),
    domains: Type.Array(formatted('host'), {
      description: 'Email domains whose addresses the provider can verify. Empty: all domains.',
      default: [],
    }),
    link: Type.Boolean({
      description:
        'If an identity of this provider is not linked yet, link it to the account with the same verified email. false: link it only after the person has entered the password of the account.',
      default: true,
    }),
    register: Type.Boolean({
      description:
        'If a person signs in for the first time and has no account, create one. false: the response is 403.',
      default: true,
    }),
  },
  { description: 'One identity provider.' },
)

export const providers = Type.Record(PLAN_PATTERN, provider, {
  title: 'a mapping of names to identity providers',
  description: 'OpenID Connect providers that users can sign in with, by name.',
  default: {},
  additionalProperties: false,
})
