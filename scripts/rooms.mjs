// The order of the folders of `src`, for the linter's configuration (write-room-rules.mjs) and the architecture test.

/**
 * @typedef {object} Room
 * @property {string} name
 * @property {string} duty
 * @property {readonly string[]} [forbids] patterns of more files that it may not import
 */

/**
 * From left to right. A room imports only rooms of the floors further right, also for types. Rooms of one floor do not
 * import each other. A name that ends in `.ts` is a file in the root of `src`.
 * @type {readonly (readonly Room[])[]}
 */
export const floors = [
  [
    { name: 'cli.ts', duty: 'The program `peage`.' },
    { name: 'worker.ts', duty: 'The program of one worker process.' },
  ],
  [{ name: 'commands', duty: 'The commands of `peage`: their arguments and their output.' }],
  [{ name: 'server', duty: 'Starts, reloads, drains and ends the process, with or without workers.' }],
  [
    {
      name: 'composition',
      duty: 'Builds everything that one configuration needs from the rooms to the right.',
    },
    { name: 'explain', duty: 'The dry run: the same gate, with stubs instead of stores and network.' },
  ],
  [{ name: 'proxy', duty: 'Handles a request: client listener, gate, upstream, response.' }],
  [
    { name: 'admin', duty: 'For operators: the admin listener, its API, health checks and the audit log.' },
    {
      name: 'gate',
      duty: 'Parses the request, finds its route and runs the guards.',
      // The gate may use targets, but not the code that sends requests and relays responses.
      forbids: ['**/upstream/forward.ts', '**/upstream/response-relay.ts'],
    },
  ],
  [
    {
      name: 'endpoints',
      duty: 'The API of the gateway itself, under /api/v1/auth, /api/v1/user and /.well-known.',
    },
  ],
  [
    {
      name: 'upstream',
      duty: 'Targets, connections, retries, the relay of responses, WebSockets.',
    },
    {
      name: 'accounts',
      duty: 'Registration, login and logout: passwords, sessions, refresh tokens, codes in mails.',
    },
    { name: 'webhooks', duty: 'Webhooks, alerts and their deliveries, events.' },
    { name: 'usage', duty: 'The daily use of the free plan.' },
    { name: 'openapi', duty: 'The OpenAPI document and its page.' },
  ],
  [{ name: 'mail', duty: 'Composes, stores and sends mails to users.' }],
  [
    { name: 'identity', duty: 'Authentication: tokens, signing keys, API tokens, and their cache.' },
    {
      name: 'outbox',
      duty: 'Sends stored messages in the background: leases, attempts, retries.',
    },
  ],
  [{ name: 'users', duty: 'The user record: its store, status and session epoch.' }],
  [
    {
      name: 'http',
      duty: 'Extends node:http: servers, TLS, pipelining, upgrades, bodies, refusals as bytes.',
    },
  ],
  [
    {
      name: 'storage',
      duty: 'Postgres, PGlite, Redis, the change feed, rate limiters, migrations.',
    },
  ],
  [{ name: 'observability', duty: 'Log, metrics, traces.' }],
  [
    { name: 'refusals', duty: 'Every refusal: its error code and its French message.' },
    { name: 'config', duty: 'Reads, checks, decodes and compares configurations.' },
  ],
  [
    { name: 'async', duty: 'Semaphore, coalescing queue, values that may be promises.' },
    { name: 'schema', duty: 'The schema language: JSON Schemas that the compiler reads types from.' },
    { name: 'clock.ts', duty: 'The time.' },
    { name: 'version.ts', duty: "The package's name and version." },
  ],
]
