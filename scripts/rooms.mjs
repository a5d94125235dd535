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
  [{ name: 'commands', duty: 'Commands: what `peage` reads from the command line, and what it prints.' }],
  [{ name: 'server', duty: 'The process: starts, reloads, drains and ends, with or without workers.' }],
  [
    {
      name: 'composition',
      duty: 'All joined: builds everything that one configuration needs from the rooms to the right.',
    },
    { name: 'explain', duty: 'The dry run: the same gate over stubs in the place of stores and network.' },
  ],
  [{ name: 'proxy', duty: 'One request: from the client listener through gate and upstream to its end.' }],
  [
    { name: 'admin', duty: 'Operators: the admin listener, its API, health and audit.' },
    {
      name: 'gate',
      duty: 'May it pass? Parses the request, finds its route and runs the guards.',
      // The gate may use targets, but not the code that sends requests and relays responses.
      forbids: ['**/upstream/forward.ts', '**/upstream/response-relay.ts'],
    },
  ],
  [
    {
      name: 'endpoints',
      duty: 'Our own API: what clients are answered under /api/v1/auth, /api/v1/user and /.well-known.',
    },
  ],
  [
    {
      name: 'upstream',
      duty: 'Where it goes: targets, connections, retries, the answer on its way back, WebSockets.',
    },
    { name: 'accounts', duty: 'Sign up, in and out: passwords, sessions, refresh tokens, codes of mails.' },
    { name: 'webhooks', duty: 'Telling users and services: webhooks, alerts and their deliveries, events.' },
    { name: 'usage', duty: 'What is left: the daily use of the free plan.' },
    { name: 'openapi', duty: 'Description: the OpenAPI document and its page.' },
  ],
  [{ name: 'mail', duty: 'Mails to users: composed, stored, sent.' }],
  [
    { name: 'identity', duty: 'Who calls: tokens, signing keys, API tokens, and what is cached of them.' },
    {
      name: 'outbox',
      duty: 'Sending in the background: leases, attempts and retries of what was stored to be sent.',
    },
  ],
  [{ name: 'users', duty: 'The user record: its store, status and session epoch.' }],
  [{ name: 'http', duty: 'node:http: servers, TLS, pipelining, upgrades, bodies, refusals on the wire.' }],
  [
    {
      name: 'storage',
      duty: 'Where it is kept: Postgres, PGlite, Redis, the change feed, rate limiters, migrations.',
    },
  ],
  [{ name: 'observability', duty: 'What it tells: log, metrics, traces.' }],
  [
    { name: 'refusals', duty: 'How we say no: every code and every French sentence.' },
    { name: 'config', duty: 'What operators wrote: read, checked, decoded, compared.' },
  ],
  [
    { name: 'async', duty: 'Waiting: semaphore, coalescing queue, values that may be promises.' },
    { name: 'schema', duty: 'The schema language: JSON Schemas that the compiler reads types from.' },
    { name: 'clock.ts', duty: 'The time.' },
    { name: 'version.ts', duty: "The package's name and version." },
  ],
]
