// Defines the schema of the account data that users and operators export.
import { Type } from '../schema/type.ts'
import * as terms from './schema-builders.ts'

const { record, text, instant, nullable } = terms

const session = record({
  id: text('A UUID.'),
  created_at: instant('When the user signed in.'),
  last_used_at: instant('When its tokens were last exchanged, or the user signed in.'),
  expires_at: instant('When it ends if its tokens are not exchanged.'),
  user_agent: nullable(text('Of the sign-in, cut to 200 characters.')),
})

const delivery = record({
  id: terms.id('The delivery’s id.'),
  alert_id: text('The alert’s: the `webhook-id` is `msg_`, this without its dashes, `_` and the user’s id.'),
  type: nullable(text('The alert’s; `null` once the alert is no longer kept.')),
  status: text('`pending`, `delivered`, `failed` or `dropped`.'),
  attempts: terms.count('So far.'),
  response_status: nullable(terms.count('Of the last attempt’s answer.')),
  error: nullable(text('What went wrong with the last attempt.')),
  created_at: instant('When the alert was emitted.'),
  finished_at: nullable(instant('When it ended.')),
})

const mail = record({
  kind: text('What it was about.'),
  status: text('`pending`, `sent` or `failed`.'),
  created_at: instant('When it was stored.'),
  sent_at: nullable(instant('When it was sent.')),
})

export const accountExport = record(
  {
    user: terms.user,
    subscription: nullable(
      record({
        plan: terms.plan,
        created_at: instant('When it began.'),
        updated_at: instant('When the plan last changed.'),
      }),
    ),
    sessions: Type.Array(session, { description: 'The active ones.' }),
    api_token: nullable(
      record({
        created_at: instant('When it was made.'),
        last_used_at: nullable(instant('When it was last used.')),
      }),
    ),
    webhook: nullable(
      record({ url: text('Where alerts go.'), created_at: instant('When it was registered.') }),
    ),
    deliveries: Type.Array(delivery, { description: 'Of alerts to the user’s webhook.' }),
    mails: Type.Array(mail, { description: 'To the user’s address.' }),
  },
  {
    title: 'AccountExport',
    description:
      'All that is kept of one user but for secrets, hashes and codes. Of lists the newest 1,000, newest first.',
  },
)
