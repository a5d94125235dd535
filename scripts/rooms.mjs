// Lists the rooms (folders) of `src` by floor. The linter's rules and the architecture test read this list.

/**
 * @typedef {object} Room
 * @property {string} name
 * @property {string} duty
 * @property {readonly string[]} [forbids] patterns of files that the room must not import, although they are in lower
 *   rooms
 */

/**
 * The floors from top to bottom. A room may import code and types only from rooms on lower floors. Rooms on the same
 * floor must not import each other. A name that ends in `.ts` is a file directly in `src`.
 * @type {readonly (readonly Room[])[]}
 */
export const floors = [
  [
    { name: 'cli.ts', duty: 'The entry point of the program `peage`.' },
    { name: 'worker.ts', duty: 'The entry point of a worker process.' },
  ],
  [{ name: 'commands', duty: 'The commands of `peage`: arguments, output and exit code.' }],
  [{ name: 'server', duty: 'The process: start, reload, drain, shutdown, workers.' }],
  [
    { name: 'composition', duty: 'Builds everything that one configuration needs.' },
    { name: 'explain', duty: 'The dry run: the same gate, with stubs instead of stores and network.' },
  ],
  [{ name: 'proxy', duty: 'The client listener and the whole life of one request.' }],
  [
    { name: 'admin', duty: 'The admin listener: API for operators, console, health, audit.' },
    {
      name: 'gate',
      duty: 'Parses a request, finds its route and runs the guards.',
      // The gate may read the state of targets. It must not send requests or relay responses.
      forbids: ['**/upstream/forward.ts', '**/upstream/response-relay.ts'],
    },
  ],
  [
    {
      name: 'endpoints',
      duty: 'The client API under /api/v1/auth, /api/v1/user, /api/v1/subscription and /.well-known.',
    },
  ],
  [
    { name: 'upstream', duty: 'Targets, connections, retries, response relay, WebSockets.' },
    { name: 'accounts', duty: 'Registration, login, passwords, sessions, refresh tokens, mail codes.' },
    { name: 'providers', duty: 'Other identity providers: discovery, keys, ID tokens, the browser flow.' },
    { name: 'webhooks', duty: 'User webhooks, alerts, deliveries, and events for services.' },
    { name: 'usage', duty: 'Counts uses: the daily limit of plan `free`, and the quotas of plans.' },
    { name: 'openapi', duty: 'Creates the OpenAPI document.' },
  ],
  [{ name: 'mail', duty: 'Mails to users: text, storage, sending.' }],
  [
    { name: 'identity', duty: 'Tokens, signing keys, API keys, and the caches of users and sessions.' },
    {
      name: 'outbox',
      duty: 'Sends mails, deliveries and events in the background: leases, attempts, retries.',
    },
  ],
  [{ name: 'users', duty: 'The user record: store, status, session epoch.' }],
  [{ name: 'http', duty: 'node:http: servers, TLS, pipelining, upgrades, bodies, parser errors.' }],
  [{ name: 'storage', duty: 'Postgres, PGlite, Redis, change feed, rate limiters, migrations.' }],
  [{ name: 'observability', duty: 'Logs, metrics, traces.' }],
  [
    { name: 'refusals', duty: 'Every error code with its status and its texts.' },
    { name: 'config', duty: 'Reads, checks, decodes and compares the configuration file.' },
  ],
  [
    { name: 'async', duty: 'Semaphores, batches, queues, caches, values that may be promises.' },
    { name: 'schema', duty: 'JSON Schemas with types that the compiler infers.' },
    { name: 'clock.ts', duty: 'The current time.' },
    { name: 'version.ts', duty: "The package's name and version." },
  ],
]
