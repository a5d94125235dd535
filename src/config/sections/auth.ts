// The schema of the `auth` section: tokens, keys, hashing, and the limits of the account endpoints.
import { Type } from '../../schema/type.ts'
import { formatted, formattedOrZero, rate, section } from './builders.ts'
import { providers } from './providers.ts'

const hashing = section(
  {
    concurrency: Type.Optional(
      Type.Integer({
        description:
          'Maximum number of password hashes computed at the same time, per process. Omitted: the number of cores per worker, but at least 1 and at most 2. Values above 2 need a larger UV_THREADPOOL_SIZE.',
        minimum: 1,
      }),
    ),
    queue: Type.Integer({
      description: 'Maximum number of waiting password hashes. If the queue is full, the response is 503.',
      minimum: 0,
      default: 64,
    }),
    wait: formatted('duration', {
      description: 'Maximum time that a password hash may wait. After this time, the response is 503.',
      default: '5s',
    }),
  },
  { description: 'Limits for computing and checking password hashes.', default: {} },
)

/**
 * The upper limit of the cache sizes. A million users and a million tokens use about 1.7 GB (docs/dev/measurements.md),
 * and Node's heap has at most 4 GiB by default.
 */
const maxRemembered = 1_000_000

const remember = section(
  {
    users: Type.Integer({
      description:
        'Maximum number of cached users per process. Three other caches have the same limit: owners of API keys, users with no daily uses left, and quotas that a user has used up. Four entries, one in each cache, take about 930 bytes in total.',
      minimum: 1,
      maximum: maxRemembered,
      default: 100_000,
    }),
    tokens: Type.Integer({
      description:
        'Maximum number of cached valid access tokens per process, about 780 bytes each. With logout_ends_access, the same limit applies to sessions, about 300 bytes each.',
      minimum: 1,
      maximum: maxRemembered,
      default: 50_000,
    }),
  },
  { description: 'Sizes of the caches. Changes in the database invalidate the cached entries.', default: {} },
)

const rateLimits = section(
  {
    register: rate('Registrations per client address.', '300/1m'),
    login_failures: rate(
      'Failed logins per email and client address. Successful logins do not count.',
      '20/5m',
    ),
    login_failures_per_address: rate('Failed logins per client address, for all emails together.', '300/5m'),
    refresh: rate('Token refreshes per client address.', '600/1m'),
    bad_keys: rate('Unknown X-API-Key values per client address.', '300/1m'),
    keys: rate('New API keys per user.', '30/1h'),
    external: rate('Sign-ins with other identity providers per client address.', '300/1m'),
  },
  { description: 'Rate limits of the account endpoints. 0 turns a limit off.', default: {} },
)

export const auth = section(
  {
    issuer: Type.String({
      title: 'a name',
      description: 'Issuer of the tokens, in the iss claim.',
      minLength: 1,
      default: 'peage',
    }),
    audience: Type.String({
      title: 'a name',
      description: 'Audience of the tokens, in the aud claim.',
      minLength: 1,
      default: 'peage',
    }),
    access_token_ttl: formatted('lifetime', {
      description: 'Lifetime of an access token.',
      default: '15m',
    }),
    refresh_token_ttl: formatted('lifetime', {
      description: 'Lifetime of a refresh token.',
      default: '30d',
    }),
    session_max: formattedOrZero('session_max', {
      description:
        'Maximum age of a session and its tokens, counted from the login. 0: no limit, as long as the client refreshes its tokens.',
      default: '0s',
    }),
    logout_ends_access: Type.Boolean({
      description:
        'When a session ends, also end its access tokens and open streams. false: access tokens stay valid until they expire, and streams stay open.',
      default: false,
    }),
    refresh_reuse: Type.Enum(['reject', 'revoke_all'], {
      description:
        'Reaction to a refresh token that was already used. reject: refuse it. revoke_all: refuse it, and revoke all sessions of the user if the token was exchanged more than 10 s ago.',
      default: 'reject',
    }),
    common_passwords: Type.Enum(['allow', 'refuse'], {
      description:
        'Rule for new passwords at registration, change and reset. refuse: a password must not be the email, its local part, or one of the 10,000 most common passwords.',
      default: 'allow',
    }),
    keys: Type.Array(Type.String({ title: 'a file name', minLength: 1 }), {
      description:
        'Files with private JWKs. The first key signs, and all keys verify. Empty: the gateway creates a key and stores it in the database.',
      default: [],
    }),
    key_secret: formatted('secret', {
      description:
        'Secret that encrypts the signing keys and webhook secrets in the database. Mail codes are derived from it. Empty: keys and secrets are stored unencrypted, including the key for mail codes. The gateway logs a warning.',
      default: '',
    }),
    key_secret_old: Type.String({
      description:
        'Previous key_secret. It decrypts stored keys and secrets until peage keys reseal has re-encrypted them with key_secret.',
      default: '',
    }),
    return_urls: Type.Array(formatted('return_url'), {
      description:
        'Pages to which browsers may return after the user has signed in with a provider. Empty: users cannot sign in with a provider in a browser.',
      default: [],
    }),
    providers,
    hashing,
    remember,
    rate_limits: rateLimits,
  },
  { description: 'Accounts and sessions.', default: {} },
)
