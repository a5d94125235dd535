// Defines the schema of the account data that users and operators export.
import { Type } from '../schema/type.ts'
import * as terms from './schema-builders.ts'

const { record, text, instant, nullable } = terms

const session = record({
  id: text('The session ID, a UUID.'),
  created_at: instant('The time of the login.'),
  last_used_at: instant('The time of the last token refresh, or of the login if there was no refresh.'),
  expires_at: instant('The time when the session expires if its tokens are not refreshed.'),
  user_agent: nullable(text('The `User-Agent` of the login, cut to 200 characters.')),
})

const delivery = record({
  id: terms.id('The delivery ID.'),
  alert_id: text('The alert ID. The `webhook-id` is `msg_<alert ID without dashes>_<user ID>`.'),
  type: nullable(text('The type of the alert. `null` if the alert is deleted.')),
  status: text('`pending`, `delivered`, `failed` or `dropped`.'),
  attempts: terms.count('The number of attempts so far.'),
  response_status: nullable(terms.count('The status code of the response to the last attempt.')),
  error: nullable(text('The error of the last attempt, if there was no response.')),
  created_at: instant('The time at which the gateway received the alert.'),
  finished_at: nullable(instant('The time at which the delivery ended. `null` if the delivery is pending.')),
})

const mail = record({
  kind: text('The kind of mail.'),
  status: text('`pending`, `sent` or `failed`.'),
  created_at: instant('The time at which the mail was queued.'),
  sent_at: nullable(
    instant('The time at which the SMTP server accepted the mail. `null` if the mail is not sent.'),
  ),
})

/** The names of providers depend on the configuration, so the export does not contain them. */
const { provider: _, ...ofStoredIdentity } = terms.identity

export const accountExport = record(
  {
    user: terms.user,
    subscription: nullable(
      record({
        plan: terms.plan,
        created_at: instant('The start time of the subscription.'),
        updated_at: instant('The time of the last plan change.'),
      }),
    ),
    sessions: Type.Array(session, { description: 'The active sessions.' }),
    api_token: nullable(
      record({
        created_at: instant('The creation time of the key.'),
        last_used_at: nullable(instant('The approximate time of the last use.')),
      }),
    ),
    api_keys: Type.Array(terms.keyRecord, {
      description: 'At most 100 API keys, newest first, including revoked keys.',
    }),
    identities: Type.Array(record({ ...terms.issuerAndSub, ...ofStoredIdentity }), {
      description: 'The user’s identities at identity providers, oldest first.',
    }),
    webhook: nullable(
      record({
        url: text('The URL that receives alerts.'),
        created_at: instant('The registration time of the webhook.'),
      }),
    ),
    deliveries: Type.Array(delivery, { description: 'Deliveries of alerts to the user’s webhook.' }),
    mails: Type.Array(mail, { description: 'Mails to the user’s current email.' }),
    usage: terms.quotaUsage,
  },
  {
    title: 'AccountExport',
    description:
      'All data stored about one user, without secrets, hashes and codes. Sessions, deliveries and mails: the newest 1,000 of each.',
  },
)
