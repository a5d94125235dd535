// The schema of the `mail` section: how mails are sent, which pages they link to, and how long their codes are valid.
import { Type } from '../../schema/type.ts'
import { formatted, rate, section } from './builders.ts'

const links = section(
  {
    reset: Type.Optional(formatted('mail_link', { description: 'Where a new password is set.' })),
    verify: Type.Optional(formatted('mail_link', { description: 'Where an email is verified.' })),
    email: Type.Optional(formatted('mail_link', { description: 'Where a new email is confirmed.' })),
  },
  {
    description:
      'The application’s own pages, {token} filled in. Without one, the mails of its kind carry the code alone.',
    default: {},
  },
)

const codeTtl = section(
  {
    reset: formatted('code_ttl', { description: 'Of a forgotten password.', default: '30m' }),
    verify: formatted('code_ttl', { description: 'Of a verification.', default: '24h' }),
    email: formatted('code_ttl', { description: 'Of a change of email.', default: '30m' }),
  },
  { description: 'How long a code and its token are good: 1s to 30d.', default: {} },
)

const rateLimits = section(
  {
    per_email: rate('Mails that are asked for, per address they would go to.', '5/1h'),
    per_address: rate('Mails that are asked for, per client address.', '30/1h'),
  },
  {
    description: 'Over all kinds of mails that are asked for; past one nothing is sent. 0 switches one off.',
    default: {},
  },
)

export const mail = section(
  {
    smtp: formatted('smtp', {
      description:
        'smtps://, or smtp:// with STARTTLS, certificate and name checked; without TLS only to loopback, or with ?tls=off. log prints mails to the log. Empty: no mails.',
      default: '',
    }),
    from: formatted('sender', {
      description:
        'The sender of every mail, such as Péage <no-reply@example.com>. Needed where smtp is set.',
      default: '',
    }),
    product: Type.Optional(
      formatted('product', {
        description: 'The name of the product in subjects and texts. Omitted or empty: the host of from.',
      }),
    ),
    contact: Type.Optional(
      formatted('contact', {
        description:
          'An email address or an https:// address that the texts name for questions. Omitted or empty: none.',
      }),
    ),
    links,
    language: Type.Enum(['fr', 'en'], {
      description: 'Of the texts that no template replaces.',
      default: 'fr',
    }),
    templates: Type.Optional(
      Type.String({
        title: 'a folder',
        description:
          'A folder with texts of your own: reset.txt, verify.txt, email.txt, notice.txt, each with or without a .html.',
        minLength: 1,
      }),
    ),
    verify_on_register: Type.Boolean({
      description: 'A registration also sends the mail that verifies the email.',
      default: false,
    }),
    notices: Type.Boolean({
      description:
        'Users are told of changes: password, email, deletion, and a change of email that was asked for.',
      default: true,
    }),
    code_ttl: codeTtl,
    rate_limits: rateLimits,
  },
  { description: 'Mails to users. Omit the section, or leave smtp empty, to send none.' },
)
