// Every error of shape is one line, at the place where it can be fixed, and says what would be right.
import { describe, expect, it } from 'vitest'
import { linesOf } from './reading.ts'

const ROUTE = [
  'upstreams: { a: { targets: ["http://a"] } }',
  'routes:',
  '  - path: /x',
  '    upstream: a',
].join('\n')

describe('the file as a whole', () => {
  const keys =
    'its keys are server, admin, storage, auth, account, limits, subscription, webhooks, mail, events, upstreams, routes, tests'
  it.each([
    ['', [`1:1  (file)  is empty; ${keys}`]],
    ['\n# nothing\n', [`1:1  (file)  is empty; ${keys}`]],
    ['~', [`1:1  (file)  is empty; ${keys}`]],
    ['- a\n', [`1:1  (file)  must be a mapping; ${keys}`]],
    ['text', [`1:1  (file)  must be a mapping; ${keys}`]],
    ['${A}', ['1:1  (file)  needs A, which is not set in the environment; set it or write ${A:-default}']],
  ])('%j', (text, lines) => expect(linesOf(text)).toEqual(lines))
})

describe('YAML that cannot be read', () => {
  it.each([
    ['auth:\n\tissuer: x\n', '2:1  (file)  is not valid YAML: the indentation has a tab; indent with spaces'],
    ['auth: "x\nlimits: 1\n\n', '2:10  (file)  is not valid YAML: the closing " of this text is missing'],
    [
      'auth: a: b\n',
      '1:7  (file)  is not valid YAML: this value contains a colon and a space; put the value in quotes',
    ],
    [
      'server: { cors: { origins: ["https://a.com" "https://hunter2"] } }',
      '1:45  (file)  is not valid YAML: a comma is missing between two entries inside { } or [ ]',
    ],
    [
      'a: { targets: [http://[::1]:9000] }',
      '1:23  (file)  is not valid YAML: inside { } and [ ] put an IPv6 address in quotes',
    ],
    [
      'a: { url: http://[::1]:9000, weight: 1 }',
      '1:18  (file)  is not valid YAML: inside { } and [ ] put an IPv6 address in quotes',
    ],
    ['auth: &hunter2: 1', '1:15  (file)  is not valid YAML: anchor ending in : is ambiguous'],
    ['server: { cors: { origins: [*] } }', '1:29  (file)  is not valid YAML: put * in quotes: "*"'],
    ['server:\n  cors:\n    origins:\n      - *\n', '4:9  (file)  is not valid YAML: put * in quotes: "*"'],
    [
      'auth: |hunter2\n  x',
      '1:8  (file)  is not valid YAML: the text after | or > must begin on the next line',
    ],
    [
      'auth: "abc" hunter2\n',
      '1:13  (file)  is not valid YAML: this text follows a closing "; write \\" for a quote inside the text',
    ],
    [
      '- a\nb: hunter2\n',
      '2:1  (file)  is not valid YAML: this text belongs to no value; correct its indentation',
    ],
    [
      'routes:\n  - path: /x\n   upstream: a\n',
      '3:1  (file)  is not valid YAML: the indentation does not fit the list above; align this line, or begin it with -',
    ],
    [
      'auth:\n  issuer: x\n audience: y\n',
      '3:1  (file)  is not valid YAML: the indentation differs from the keys above; align this line with them',
    ],
    [
      'routes:\n- path: /x\n - path: /y\n',
      '3:2  (file)  is not valid YAML: the indentation differs from the items above; align this line with them',
    ],
    [
      'auth:\n  issuer: x\n    audience: y\n',
      '2:11  (file)  is not valid YAML: the indentation of the line after this value is too deep; align it with this key',
    ],
    [
      'server\n  listen: x\n',
      '1:1  (file)  is not valid YAML: the colon after this key is missing; write key: value',
    ],
    [
      'server: {}\nauth\n',
      '2:1  (file)  is not valid YAML: the colon after this key is missing; write key: value',
    ],
    [
      "auth: { issuer: 'it's' }",
      "1:21  (file)  is not valid YAML: this text follows a closing '; write '' for a quote inside the text",
    ],
    [
      'storage: { postgres: "postgres://u:p"ss@h/db" }',
      '1:38  (file)  is not valid YAML: this text follows a closing "; percent-encode a quote in an address (" is %22 and \' is %27)',
    ],
    [
      'auth: { issuer: x\n',
      '1:18  (file)  is not valid YAML: the closing } is missing, or a line after { is not indented',
    ],
    [
      'auth: ]\n',
      '1:7  (file)  is not valid YAML: this ] closes nothing; remove it, or put the value in quotes',
    ],
  ])('%j is one line, which quotes nothing from the file', (text, line) => {
    expect(linesOf(text)).toEqual([line])
  })

  it('for a key of over 1,024 characters is said in a whole sentence', () => {
    expect(linesOf(`${'k'.repeat(1_025)}: 1`)).toEqual([
      '1:1  (file)  is not valid YAML: this key is longer than 1024 characters',
    ])
  })

  it('in one value is told beside what cannot be read after it', () => {
    expect(linesOf('auth:\n  issuer: @x\n  audience: "\\q"\nlimits: a: b\nx: @y')).toEqual([
      '2:11  (file)  is not valid YAML: a value that begins with @ must be in quotes',
      '3:14  (file)  is not valid YAML: unknown escape after \\ (in single quotes \\ is an ordinary character)',
      '4:9  (file)  is not valid YAML: this value contains a colon and a space; put the value in quotes',
    ])
  })

  it('in one value does not hide what is wrong elsewhere', () => {
    const text = 'auth:\n  issuer: @x\n  audience: "\\q"\nlimits: !big { free_daily: 0 }\n---\nx: 1'
    expect(linesOf(text)).toEqual([
      '2:11  (file)  is not valid YAML: a value that begins with @ must be in quotes',
      '3:14  (file)  is not valid YAML: unknown escape after \\ (in single quotes \\ is an ordinary character)',
      '4:9  (file)  is not valid YAML: tags (!…) have no meaning here',
      '4:28  limits.free_daily  must be at least 1',
      '5:1  (file)  is not valid YAML: a second document begins here; keep one',
    ])
  })
})

describe('a name that may not be one', () => {
  it('does not hide what is wrong below it', () => {
    const text =
      'upstreams:\n  "a b": { targets: [x], retries: "${N}", nme: 1 }\nadmin: { tokens: { "c d": short } }'
    expect(linesOf(text, { N: '2' })).toEqual([
      '2:3  upstreams["a b"]  must be a name of letters, digits, _ . and - that begins with a letter or digit',
      '2:22  upstreams["a b"].targets[0]  must be an address such as http://127.0.0.1:9000 or https://courses.internal',
      '2:43  upstreams["a b"].nme  unknown key; known here: targets, resolve, connection_age, split_by, health, timeouts, retries, circuit_breaker, connections, connections_per_client, tls',
      '3:20  admin.tokens["c d"]  must be a name of letters, digits, _ . and - that begins with a letter or digit',
      '3:27  admin.tokens["c d"]  is shorter than 16 characters; take a long random one',
    ])
  })
})

describe('keys', () => {
  it.each([
    ['servr: {}', '1:1  servr  unknown key; did you mean server?'],
    ['auth: { accessTokenTtl: 1m }', '1:9  auth.accessTokenTtl  unknown key; did you mean access_token_ttl?'],
    [
      'server: { reload: 2 }',
      '1:11  server.reload  unknown key; known here: listen, workers, trusted_proxies, drain_timeout, timeouts, log, tls, cors',
    ],
    ['server: { port: 8080 }', '1:11  server.port  unknown key; did you mean listen (HOST:PORT)?'],
    ['admin: { host: 127.0.0.1 }', '1:10  admin.host  unknown key; did you mean listen (HOST:PORT)?'],
    ['limits: { a/b~c: 1 }', '1:11  limits["a/b~c"]  unknown key; known here: free_daily'],
    ['limits: { "a\\nb": 1 }', '1:11  limits["a\\nb"]  unknown key; known here: free_daily'],
    ['limits: { 1: 1 }', '1:11  limits["1"]  unknown key; known here: free_daily'],
    [
      'limits: { __proto__: { free_daily: 9 } }',
      '1:11  limits.__proto__  unknown key; known here: free_daily',
    ],
    ['limits: { constructor: 1 }', '1:11  limits.constructor  unknown key; known here: free_daily'],
    ['limits: { ? [a] : 1 }', '1:13  limits  has a key that is not plain text'],
    [
      'limits:\n  free_daily: 1\n  free_daily: 2',
      '3:3  limits.free_daily  is set twice in the same mapping; keep one',
    ],
    ['limits: {}\nlimits: {}', '2:1  limits  is set twice in the same mapping; keep one'],
    [
      'upstreams:\n  "a b": { targets: ["http://a"] }',
      '2:3  upstreams["a b"]  must be a name of letters, digits, _ . and - that begins with a letter or digit',
    ],
    [
      'upstreams:\n  __proto__: { targets: ["http://a"] }',
      '2:3  upstreams.__proto__  must be a name of letters, digits, _ . and - that begins with a letter or digit',
    ],
    [
      'upstreams:\n  a:\n    connections: 1\n',
      '2:3  upstreams.a.targets  is required: a list of at least one address',
    ],
    [
      'upstreams:\n  a:\n    target: ["http://a"]\n',
      '3:5  upstreams.a.target  unknown key; did you mean targets?',
    ],
  ])('%j', (text, line) => expect(linesOf(text)).toEqual([line]))
})

describe('values', () => {
  it.each([
    ['server: []', '1:9  server  must be a mapping of keys'],
    [
      'server:\n  listen:x\n',
      '2:3  server  must be a mapping of keys; write each as key: value, with a space after the colon',
    ],
    ['routes: {}', '1:9  routes  must be a list'],
    ['routes: [7]', '1:10  routes[0]  must be a mapping of keys'],
    ['admin:', '1:1  admin  must be a mapping of keys'],
    ['limits: { free_daily: }', '1:11  limits.free_daily  must be a whole number'],
    ['limits: { free_daily: 1.5 }', '1:23  limits.free_daily  must be a whole number'],
    ['limits: { free_daily: .inf }', '1:23  limits.free_daily  must be a whole number'],
    ['limits: { free_daily: 0 }', '1:23  limits.free_daily  must be at least 1'],
    ['limits: { free_daily: 2147483648 }', '1:23  limits.free_daily  must be at most 2147483647'],
    ['webhooks: { timeout: 0s }', '1:22  webhooks.timeout  must be more than 0'],
    ['auth: { remember: { users: 1000001 } }', '1:28  auth.remember.users  must be at most 1000000'],
    ['auth: { remember: { tokens: 0 } }', '1:29  auth.remember.tokens  must be at least 1'],
    ['webhooks: { timeout: 30d }', '1:22  webhooks.timeout  must be at most 24d'],
    ['webhooks: { retention: 0d }', '1:24  webhooks.retention  must be more than 0'],
    ['webhooks: { retention: 30 d }', '1:24  webhooks.retention  must be a duration such as 15m or 30d'],
    [
      'webhooks: { timeout: 10 s }',
      '1:22  webhooks.timeout  must be a duration such as 250ms, 30s, 15m or 2h',
    ],
    [
      'upstreams: { a: { targets: ["http://a"], resolve: { every: 10 s } } }',
      '1:60  upstreams.a.resolve.every  must be a duration of 1s to 1h',
    ],
    [
      'upstreams: { a: { targets: ["http://a"], connection_age: 5 m } }',
      '1:58  upstreams.a.connection_age  must be a duration such as 5m, or 0 for no limit',
    ],
    ['mail: { code_ttl: { reset: 30 m } }', '1:28  mail.code_ttl.reset  must be a duration of 1s to 30d'],
    ['webhooks: { retention: 30 }', '1:24  webhooks.retention  must be a duration such as 15m or 30d'],
    [
      'webhooks: { allow_private_networks: "yes" }',
      '1:37  webhooks.allow_private_networks  must be true or false',
    ],
    [
      'webhooks: { retries: 1 }',
      '1:13  webhooks.retries  unknown key; known here: allow_private_networks, timeout, retention',
    ],
    ['subscription: { url: "" }', '1:17  subscription.url  unknown key; known here: upgrade_url'],
    ['auth: { issuer: 7 }', '1:17  auth.issuer  must be a name, in quotes'],
    [
      'admin: { token: 1234567890123456 }',
      '1:17  admin.token  must be a token of at least 16 characters, in quotes',
    ],
    [
      'admin: { tokens: { ops: 1234567890123456 } }',
      '1:25  admin.tokens.ops  must be a token of at least 16 characters, in quotes',
    ],
    [
      'auth: { key_secret: 1234567890123456 }',
      '1:21  auth.key_secret  must be a secret of at least 16 characters, or empty for none, in quotes',
    ],
    ['admin: { token: 1234 }', '1:17  admin.token  must be a token of at least 16 characters'],
    ['admin: { tokens: { ops: 1234 } }', '1:25  admin.tokens.ops  must be a token, or { token, may }'],
    [
      'server: { workers: true }',
      '1:20  server.workers  must be a number of processes, or auto for one per core',
    ],
    ['auth: { issuer: "" }', '1:17  auth.issuer  must be a name'],
    [
      'auth: { refresh_reuse: revoke-all }',
      '1:24  auth.refresh_reuse  must be reject or revoke_all; did you mean revoke_all?',
    ],
    ['auth: { refresh_reuse: 7 }', '1:24  auth.refresh_reuse  must be reject or revoke_all'],
    ['auth: { access_token_ttl: 0s }', '1:27  auth.access_token_ttl  must be more than 0'],
    [
      'auth: { refresh_token_ttl: 900 }',
      '1:28  auth.refresh_token_ttl  must be a duration such as 15m or 30d',
    ],
    [
      'auth: { rate_limits: { refresh: 5 } }',
      '1:33  auth.rate_limits.refresh  must be a rate such as 300/1m, or 0 to switch it off',
    ],
    [
      'auth: { rate_limits: { refresh: 5/x } }',
      '1:33  auth.rate_limits.refresh  must be a rate such as 300/1m, or 0 to switch it off',
    ],
    ['server: { workers: 0 }', '1:20  server.workers  must be at least 1'],
    ['server: { workers: 1025 }', '1:20  server.workers  must be at most 1024'],
    [
      'server: { workers: many }',
      '1:20  server.workers  must be a number of processes, or auto for one per core',
    ],
    [
      'server: { listen: 8080 }',
      '1:19  server.listen  must be HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080',
    ],
    [
      'server: { trusted_proxies: [::1, 10.0.0.0/99] }',
      '1:34  server.trusted_proxies[1]  must have a prefix length of 0 to 32 after the /',
    ],
    ['server: { log: { requests: 1 } }', '1:28  server.log.requests  must be true or false'],
    ['storage: { redis: {} }', '1:12  storage.redis.cluster  is required: a list of at least one node'],
    [
      'tests: [{ request: GET /, as: {}, expect: { status: 200 } }]',
      '1:27  tests[0].as.plan  is required: free, premium or pro',
    ],
    ['storage: { redis: { sentinels: [a:1] } }', '1:12  storage.redis.name  is required: a name'],
    [
      'storage: { redis: { clusters: [a:1] } }',
      '1:21  storage.redis.clusters  unknown key; did you mean cluster?',
    ],
    [
      'storage: { redis: { cluster: [] } }',
      '1:30  storage.redis.cluster  must be a list of at least one node',
    ],
    [
      'storage: { redis: [a] }',
      '1:19  storage.redis  must be a redis:// or rediss:// address, or empty for none, or { cluster: […] }, or { sentinels: […], name: … }',
    ],
    [
      'upstreams: { a: { targets: [] } }',
      '1:28  upstreams.a.targets  must be a list of at least one address',
    ],
    [
      'upstreams: { a: { targets: ["http://a/v2"] } }',
      '1:29  upstreams.a.targets[0]  must not have a path; strip_prefix or rewrite on the route changes paths',
    ],
    ['upstreams: { a: { targets: ["http://a:00"] } }', '1:29  upstreams.a.targets[0]  must not have port 0'],
  ])('%j', (text, line) => expect(linesOf(text)).toEqual([line]))

  it.each([
    [
      'plans: []',
      '5:12  routes[0].plans  must be a list of at least one plan (free, premium, pro); omit it for every plan',
    ],
    ['plans: [gold]', '5:13  routes[0].plans[0]  must be free, premium or pro'],
    ['methods: []', '5:14  routes[0].methods  must be a list of at least one method'],
    ['methods: [get]', '5:15  routes[0].methods[0]  must be in upper case: GET'],
    ['methods: [CONNECT]', '5:15  routes[0].methods[0]  must not be CONNECT: tunnels are not forwarded'],
    ['methods: GET', '5:14  routes[0].methods  must be a list of at least one method'],
    ['auth: require', '5:11  routes[0].auth  must be required, optional or none; did you mean required?'],
    [
      'hosts: ["*.a"]',
      '5:13  routes[0].hosts[0]  must be a host name such as api.example.com, in ASCII and without wildcards',
    ],
    ['max_body: 10MB', '5:15  routes[0].max_body  must be a size such as 64KiB or 10MiB'],
    ['timeout: 90d', '5:14  routes[0].timeout  must be at most 24d'],
    ['name: a b', '5:11  routes[0].name  must be a name of letters, digits, _ . and -'],
    ['rewrite: /é', '5:14  routes[0].rewrite  must have everything outside ASCII percent-encoded'],
  ])('a route with %s', (key, line) => expect(linesOf(`${ROUTE}\n    ${key}`)).toEqual([line]))
})

describe('secrets', () => {
  it('are never repeated, whatever is wrong with them', () => {
    const secret = 'hunter2-hunter2'
    const env = { S: secret, P: `mysql://u:${secret}@db`, R: `http://:${secret}@r`, N: `x ${secret}` }
    const text = [
      'admin: { token: "${S}", tokens: { ops: "${N}" } }',
      'storage: { postgres: "${P}", redis: "${R}", pool: "${S}" }',
      'server: { listen: "${S}", log: { level: "${S}" } }',
      `auth: { key_secret: [${secret}], keys: "${secret}" }`,
      'upstreams: { a: { targets: ["http://u:${S}@a"] } }',
      'routes: [{ path: "/${S}{id}", upstream: a }]',
    ].join('\n')
    const lines = linesOf(text, env)
    expect(lines.map(line => line.split('  ', 2).join(' '))).toEqual([
      '1:17 admin.token',
      '1:40 admin.tokens.ops',
      '2:22 storage.postgres',
      '2:37 storage.redis',
      '2:51 storage.pool',
      '3:19 server.listen',
      '3:41 server.log.level',
      '4:21 auth.key_secret',
      '4:46 auth.keys',
      '5:29 upstreams.a.targets[0]',
      '6:18 routes[0].path',
    ])
    expect(lines.join('\n')).not.toContain('hunter2')
    expect(lines[0]).toContain('is shorter than 16 characters')
  })

  it('stand in one line each, whatever line ends a name has', () => {
    const lines = linesOf('upstreams: {a\n\n a: {targets: [http://a]}}\nroutes: [{path: /, upstream: a}]')
    expect(lines.join()).toContain('did you mean a a?')
  })

  it('nor is any text of a file that is no YAML', () => {
    for (const text of [
      '%hunter2\n',
      '%\rhunter2',
      '%YAML hunter2\n---\n',
      'a: "\\hunter2"',
      'a: *hunter2',
      '%TAG hunter2',
    ])
      expect(linesOf(text).join(), text).toSatisfy(
        (said: string) => said !== '' && !/hunter2|\p{Cc}/u.test(said),
      )
  })
})
