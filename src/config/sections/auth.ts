// The schema of the `auth` section: tokens, keys, hashing, and the limits of the account endpoints.
import { Type } from '../../schema/type.ts'
import { formatted, formattedOrZero, rate, section } from './builders.ts'

const hashing = section(
  {
    concurrency: Type.Optional(
      Type.Integer({
        description:
          'Hashes computed at once, per process. Omitted: the cores of each worker, 1 at least and 2 at most: more need a larger UV_THREADPOOL_SIZE.',
        minimum: 1,
      }),
    ),
    queue: Type.Integer({ description: 'Hashes that may wait; past it 503.', minimum: 0, default: 64 }),
    wait: formatted('duration', { description: 'How long one may wait; past it 503.', default: '5s' }),
  },
  { description: 'How much Argon2 may take of the machine.', default: {} },
)

/**
 * A million users and a million tokens use about 1.5 GB (docs/dev/measurements.md). Node's heap has at most 4 GiB by
 * default.
 */
const maxRemembered = 1_000_000

const remember = section(
  {
    users: Type.Integer({
      description:
        'Users, owners of keys, and users whose free day is spent: of each at most so many per process, some 720 bytes for one of each.',
      minimum: 1,
      maximum: maxRemembered,
      default: 100_000,
    }),
    tokens: Type.Integer({
      description:
        'Access tokens found good: at most so many per process, some 700 bytes each; with logout_ends_access as many sessions, some 300 bytes each.',
      minimum: 1,
      maximum: maxRemembered,
      default: 50_000,
    }),
  },
  { description: 'What is remembered until the database says that it changed.', default: {} },
)

const rateLimits = section(
  {
    register: rate('Registrations per client address.', '300/1m'),
    login_failures: rate('Failed logins per email and client address. Successes do not count.', '20/5m'),
    login_failures_per_address: rate('Failed logins per client address, whatever the email.', '300/5m'),
    refresh: rate('Refreshes per client address.', '600/1m'),
    bad_keys: rate('Unknown X-API-Key values per client address.', '300/1m'),
  },
  { description: 'Limits of the account endpoints; 0 switches one off.', default: {} },
)

export const auth = section(
  {
    issuer: Type.String({ title: 'a name', description: 'The iss claim.', minLength: 1, default: 'peage' }),
    audience: Type.String({ title: 'a name', description: 'The aud claim.', minLength: 1, default: 'peage' }),
    access_token_ttl: formatted('lifetime', {
      description: 'How long an access token lives.',
      default: '15m',
    }),
    refresh_token_ttl: formatted('lifetime', {
      description: 'How long a refresh token lives.',
      default: '30d',
    }),
    session_max: formattedOrZero('session_max', {
      description:
        'How long after its login a session may go on, its tokens too. 0: as long as its tokens are exchanged.',
      default: '0s',
    }),
    logout_ends_access: Type.Boolean({
      description:
        'Whether what ends a session (logout, a changed password, operators) ends its access tokens and open streams too. false: they go on until they expire.',
      default: false,
    }),
    refresh_reuse: Type.Enum(['reject', 'revoke_all'], {
      description:
        'What the use of an exchanged refresh token does: refused, or (more than 10 s after the exchange) refused with every session of its user revoked.',
      default: 'reject',
    }),
    common_passwords: Type.Enum(['allow', 'refuse'], {
      description:
        'Whether new passwords may be among the 10,000 most common, or the email or its local part. Asked at registration, change and reset.',
      default: 'allow',
    }),
    keys: Type.Array(Type.String({ title: 'a file name', minLength: 1 }), {
      description:
        'Files with private JWKs: the first signs, all verify. Empty: made once and kept in the database.',
      default: [],
    }),
    key_secret: formatted('secret', {
      description:
        'Encrypts the signing keys and webhook secrets that are kept in the database; the codes of mails are derived from it. Empty: kept as they are, and the codes under a key beside them, with a warning.',
      default: '',
    }),
    key_secret_old: Type.String({
      description:
        'The key_secret before: what it encrypted is read, until peage keys reseal has encrypted that under key_secret.',
      default: '',
    }),
    hashing,
    remember,
    rate_limits: rateLimits,
  },
  { description: 'Accounts and sessions.', default: {} },
)
