// The schema of the `mail` section: how mails are sent, which pages they link to, and how long their codes are valid.
import { Type } from '../../schema/type.ts'
import { formatted, rate, section } from './builders.ts'

const links = section(
  {
    reset: Type.Optional(formatted('mail_link', { description: 'Page to set a new password.' })),
    verify: Type.Optional(formatted('mail_link', { description: 'Page to verify an email.' })),
    email: Type.Optional(formatted('mail_link', { description: 'Page to confirm a new email.' })),
  },
  {
    description:
      'Pages of your application, with {token} for the token. Without a page, mails of that kind contain only the code.',
    default: {},
  },
)

const codeTtl = section(
  {
    reset: formatted('code_ttl', {
      description: 'Lifetime of a code for a forgotten password.',
      default: '30m',
    }),
    verify: formatted('code_ttl', { description: 'Lifetime of a code for a verification.', default: '24h' }),
    email: formatted('code_ttl', {
      description: 'Lifetime of a code for a change of email.',
      default: '30m',
    }),
  },
  { description: 'Lifetimes of codes and their tokens, from 1s to 30d.', default: {} },
)

const rateLimits = section(
  {
    per_email: rate('Requested mails per recipient address.', '5/1h'),
    per_address: rate('Requested mails per client address.', '30/1h'),
  },
  {
    description:
      'Rate limits for requested mails. All kinds of mails count together. Above a limit, no mail is sent. 0 turns a limit off.',
    default: {},
  },
)

export const mail = section(
  {
    smtp: formatted('smtp', {
      description:
        'SMTP server: smtps://, or smtp:// with STARTTLS. The certificate and its name are checked. Mails are sent without TLS only to loopback, or with ?tls=off. log: print mails to the log. Empty: no mails.',
      default: '',
    }),
    from: formatted('sender', {
      description: 'Sender of every mail, such as Péage <no-reply@example.com>. Required if smtp is set.',
      default: '',
    }),
    product: Type.Optional(
      formatted('product', {
        description:
          'Product name in subjects and texts. Omitted or empty: the domain of the sender in from.',
      }),
    ),
    contact: Type.Optional(
      formatted('contact', {
        description:
          'Email address or https:// address for questions, shown in the texts. Omitted or empty: none.',
      }),
    ),
    links,
    language: Type.Enum(['fr', 'en'], {
      description: 'Language of the built-in texts.',
      default: 'fr',
    }),
    templates: Type.Optional(
      Type.String({
        title: 'a directory name',
        description:
          'Directory with your own texts: reset.txt, verify.txt, email.txt and notice.txt. Each may have an .html file too, such as reset.html.',
        minLength: 1,
      }),
    ),
    verify_on_register: Type.Boolean({
      description: 'Send a verification mail after each registration.',
      default: false,
    }),
    notices: Type.Boolean({
      description:
        'Send users a notice when their password or email changes, when a change of email is requested, and when their account is deleted.',
      default: true,
    }),
    code_ttl: codeTtl,
    rate_limits: rateLimits,
  },
  { description: 'Mails to users. Omit the section, or leave smtp empty, to send none.' },
)
