// Describes one user with all related data, as operators see it.
import { accountExport } from '../../openapi/account-export.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'

const { record } = terms

export const session = record(
  {
    id: terms.text('The session ID, a UUID. It is the `sid` of the session’s tokens.'),
    created_at: terms.instant('The time of the login.'),
    expires_at: terms.instant('The time when the session expires if its tokens are not refreshed.'),
  },
  { title: 'Session', description: 'An active session.' },
)
const sessionWithDevice = record({
  ...session.properties,
  user_agent: terms.nullable(terms.text('The `User-Agent` of the login, cut to 200 characters.')),
})

export const details = record(
  {
    ...terms.user.properties,
    subscription: accountExport.properties.subscription,
    usage: terms.quotaUsage,
    sessions: Type.Optional(
      Type.Array(sessionWithDevice, {
        description:
          'At most 100 active sessions: the newest logins, sorted from oldest to newest. Absent for role `billing`.',
      }),
    ),
    api_token: Type.Optional(accountExport.properties.api_token),
    api_keys: Type.Optional(
      Type.Array(terms.keyRecord, {
        description: 'At most 100 API keys, newest first, including revoked keys. Absent for role `billing`.',
      }),
    ),
    identities: Type.Optional(
      Type.Array(
        record(
          { ...terms.identity, ...terms.issuerAndSub },
          { title: 'UserIdentity', description: 'The account of a user at another identity provider.' },
        ),
        { description: 'The identities, oldest first. Absent for role `billing`.' },
      ),
    ),
    webhook: Type.Optional(
      terms.nullable(
        record({
          url: terms.text('The webhook URL. With role `read`, it is only the origin of the URL.'),
          created_at: terms.instant('The registration time of the webhook.'),
        }),
      ),
    ),
  },
  {
    title: 'UserDetails',
    description: 'A user record with the subscription, quotas, sessions, API keys, identities and webhook.',
  },
)
