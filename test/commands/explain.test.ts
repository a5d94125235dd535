// Tests the JSON, the text and the exit codes of `peage explain`.
import { describe, expect, it } from 'vitest'
import { commandLine } from './peage.ts'

const { peage, write } = commandLine()

write(
  'gateway.yaml',
  `limits: { free_daily: 2 }
upstreams:
  courses: { targets: ["http://127.0.0.1:9000", "https://courses.internal"] }
  others: { targets: ["http://127.0.0.1:9001"] }
routes:
  - { name: courses, path: /api/v1/courses/*, upstream: courses, free_daily: true, strip_prefix: /api/v1 }
  - { name: reports, path: /reports/:id, upstream: others, plans: [premium, pro], methods: [GET], rate_limit: 5/1m }
  - { name: open, path: /open, upstream: others, auth: none, headers: { request: { set: { X-A: b }, remove: [X-Debug] }, response: { remove: [Server] } } }
  - { name: maybe, path: /maybe, upstream: others, auth: optional, plans: [pro] }
  - { name: tenants, path: /tenants, upstream: others, hosts: ["*.example.com"], auth: none }
  - { name: partner, path: /partner, upstream: others, hosts: [api.example.com], forward_email: true, identity_assertion: true, forward_credentials: true }
`,
)

async function explain(...words: string[]) {
  const { exit, stdout, stderr } = await peage(['explain', ...words, '--json'])
  expect(stderr).toBe('')
  return { exit, said: JSON.parse(stdout) }
}

const guards = (...outcomes: (string | object)[]) =>
  ['authenticate', 'rate_limit', 'plan', 'max_body', 'target', 'free_daily'].map((guard, index) => {
    const outcome = outcomes[index] ?? 'skip'
    return typeof outcome === 'string' ? { guard, outcome } : { guard, outcome: 'refuse', ...outcome }
  })

describe('peage explain --json', () => {
  it('accepts a method in lower case', async () => {
    const { exit, said } = await explain('get', '/open')
    expect([exit, said.request.method, said.route]).toEqual([0, 'GET', 'open'])
  })

  it('prints exactly the expected keys for a forwarded request', async () => {
    const { exit, said } = await explain(
      'GET',
      '/api/v1/courses/7?page=2',
      '--as',
      'free',
      '--used-today',
      '1',
    )
    expect(exit).toBe(0)
    expect(said).toEqual({
      request: { method: 'GET', path: '/api/v1/courses/7?page=2', as: 'free' },
      route: 'courses',
      guards: guards('pass', 'skip', 'skip', 'skip', 'pass', 'pass'),
      status: null,
      upstream: { name: 'courses', url: 'http://127.0.0.1:9000/courses/7?page=2' },
      headers: {
        request: {
          set: {
            host: '127.0.0.1:9000',
            via: '1.1 peage',
            'x-forwarded-for': '192.0.2.1',
            'x-forwarded-host': 'localhost',
            'x-forwarded-prefix': '/api/v1',
            'x-forwarded-proto': 'http',
            'x-request-id': 'explained',
            'x-user-id': '1',
            'x-user-plan': 'free',
          },
          remove: [
            ...['authorization', 'forwarded', 'x-api-key', 'x-http-method-override', 'x-original-url'],
            ...[
              'x-peage-assertion',
              'x-real-ip',
              'x-rewrite-url',
              'x-user-email',
              'x-user-key-id',
              'x-user-scopes',
            ],
          ],
        },
        response: { set: { via: '1.1 peage', 'x-request-id': 'explained' }, remove: ['x-peage-error'] },
      },
    })
  })

  it('shows the status and error code of the guard that refuses the request', async () => {
    const { exit, said } = await explain('GET', '/api/v1/courses/7', '--as', 'free', '--used-today', '2')
    expect(exit).toBe(0)
    expect(said).toMatchObject({ route: 'courses', status: 429, upstream: null })
    const spent = { status: 429, error: 'daily_limit_reached' }
    expect(said.guards).toEqual(guards('pass', 'skip', 'skip', 'skip', 'pass', spent))
    expect(said.headers.request).toEqual({ set: {}, remove: [] })
    expect(said.headers.response.set).toMatchObject({ 'x-peage-error': 'daily_limit_reached' })
  })

  it.each([
    [['GET', '/reports/1'], [{ status: 401, error: 'token_invalid' }]],
    [
      ['GET', '/reports/1', '--as', 'free'],
      ['pass', 'pass', { status: 403, error: 'plan_insufficient' }],
    ],
    [
      ['GET', '/maybe'],
      ['pass', 'skip', { status: 401, error: 'unauthenticated' }],
    ],
    [
      ['GET', '/maybe', '--as', 'pro'],
      ['pass', 'skip', 'pass', 'skip', 'pass'],
    ],
    [
      ['DELETE', '/open', '--as', 'pro'],
      ['skip', 'skip', 'skip', 'skip', 'pass'],
    ],
  ])('shows the result of each guard for the arguments %j', async (words, outcomes) => {
    const { exit, said } = await explain(...words)
    expect(exit).toBe(0)
    expect(said.guards).toEqual(guards(...outcomes))
  })

  it('shows how the route changes the headers of the request and of the response', async () => {
    const { said } = await explain('GET', '/open', '--as', 'pro')
    expect(said.headers.request.set).toMatchObject({ 'x-a': 'b' })
    expect(said.headers.request.set).not.toHaveProperty('x-user-id')
    // The gateway does not forward tokens that it issued, even on a route without authentication.
    expect(said.headers.request.remove).toEqual(
      expect.arrayContaining(['authorization', 'x-debug', 'x-user-id']),
    )
    expect(said.headers.request.remove).not.toContain('x-api-key')
    expect(said.headers.response.remove).toEqual(['server', 'x-peage-error'])
  })

  it('uses the host from --host or from a full URL', async () => {
    expect((await explain('GET', '/partner', '--as', 'pro')).exit).toBe(1)
    for (const words of [['/partner', '--host', 'API.example.com:443'], ['http://api.example.com/partner']]) {
      const { exit, said } = await explain('GET', ...words, '--as', 'pro')
      expect(exit).toBe(0)
      expect(said.route).toBe('partner')
      expect(said.headers.request.set).toMatchObject({
        'x-forwarded-host': 'api.example.com',
        'x-user-email': 'pro@example.com',
        'x-peage-assertion': '<signed by the gateway>',
      })
      expect(said.headers.request.remove).not.toContain('authorization')
    }
  })

  it('finds the route with the host *.example.com only for subdomains of example.com', async () => {
    for (const [host, status] of [
      ...[
        ['A.b.example.com.:80', null],
        ['example.com', 404],
        ['a.example.org', 404],
        ['localhost', 404],
      ],
    ] as const) {
      const { said } = await explain('GET', '/tenants', '--host', host)
      expect([host, said.route, said.status]).toEqual([host, status === null ? 'tenants' : null, status])
    }
    expect((await explain('GET', 'http://a.example.com/tenants')).said.route).toBe('tenants')
  })

  it.each([
    ['fr', 'Route inconnue'],
    ['en', 'Unknown route'],
  ])('shows the length of the error body in the configured language %s', async (language, text) => {
    const file = write('language.yaml', `server: { language: ${language} }\nroutes: []\n`)
    const { said } = await explain('-c', file, 'GET', '/nowhere')
    const length = String(JSON.stringify({ error: text }).length)
    expect(said).toMatchObject({ headers: { response: { set: { 'content-length': length } } } })
  })

  it.each([
    [['GET', '/nowhere'], 404],
    [['POST', '/reports/1', '--as', 'pro'], 405],
    [['GET', '/open/../reports/1'], 400],
    [['GET', '/open%2f'], 400],
    [['GET', '/api/v1/auth/login'], 405],
    [['GET', '/api/v1/auth/nothing'], 404],
  ])('exits with 1 and shows the response status if no route matches %j', async (words, status) => {
    const { exit, said } = await explain(...words)
    expect(exit).toBe(1)
    expect(said).toMatchObject({ route: null, guards: [], status, upstream: null })
  })

  it('shows no route for an endpoint of the gateway, and shows a status only if a guard refuses the request', async () => {
    const nothing = { request: { set: {}, remove: [] }, response: { set: {}, remove: [] } }
    expect(await explain('POST', '/api/v1/auth/login')).toEqual({
      exit: 1,
      said: {
        request: { method: 'POST', path: '/api/v1/auth/login', as: 'anonymous' },
        ...{ route: null, guards: [], status: null, upstream: null, headers: nothing },
      },
    })
    const refused = await explain('POST', '/api/v1/user/webhook', '--as', 'free')
    expect(refused).toMatchObject({ exit: 1, said: { route: null, status: 403, upstream: null } })
    expect(refused.said.guards).toEqual(guards('pass', 'skip', { status: 403, error: 'plan_insufficient' }))
    const answered = await explain('DELETE', '/api/v1/user/api-token', '--as', 'pro')
    expect(answered).toMatchObject({ exit: 1, said: { route: null, status: null, upstream: null } })
    const upgrade = await explain('HEAD', '/api/v1/subscription/upgrade')
    expect(upgrade).toMatchObject({ exit: 1, said: { route: null, status: 401 } })
  })
})

describe('peage explain', () => {
  it('prints the values of --json as text, and adds the number of other targets and the error message', async () => {
    const { stdout } = await peage(['explain', 'GET', '/api/v1/courses/7', '--as', 'free'])
    expect(stdout.split('\n').slice(0, 11)).toEqual([
      'GET /api/v1/courses/7  at localhost, as free',
      '',
      'route            courses',
      'guards           authenticate  pass',
      '                 rate_limit    skip',
      '                 plan          skip',
      '                 max_body      skip',
      '                 target        pass',
      '                 free_daily    pass',
      'response         from the upstream courses',
      'upstream         courses  http://127.0.0.1:9000/courses/7 (or the other target)',
    ])
    const refused = await peage(['explain', 'GET', '/api/v1/courses/7', '--as', 'free', '--used-today', '2'])
    expect(refused.stdout).toContain(
      'response         429 daily_limit_reached: Limite quotidienne atteinte (plan free: 2 courses/jour)\n',
    )
    const own = await peage(['explain', 'POST', '/api/v1/auth/login'])
    expect(own.stdout).toContain('response         from the gateway endpoint /api/v1/auth/login\n')
  })

  it.each([
    ['{ url: "http://a", weight: 0 }, "http://b"', 'http://b/x'],
    ['"http://a", { url: "http://b", weight: 0 }', 'http://a/x'],
    ['"http://a", "http://a/"', 'http://a/x'],
    ['{ url: "http://a", weight: 10 }, "http://b"', 'http://b/x (or the other target)'],
    [
      '{ url: "http://a", weight: 60 }, "http://b", { url: "http://a", weight: 60 }',
      'http://a/x (or the other target)',
    ],
    ['"http://a", "http://b", "http://c"', 'http://a/x (or one of 2 other targets)'],
  ])(
    'prints the target with the highest weight and the number of other targets: %s',
    async (targets, named) => {
      const file = write(
        'weights.yaml',
        `upstreams: { a: { targets: [${targets}] } }\nroutes: [{ path: /x, upstream: a, auth: none }]\n`,
      )
      const { stdout } = await peage(['explain', '-c', file, 'GET', '/x'])
      expect(stdout).toContain(`\nupstream         a  ${named}\n`)
    },
  )

  it.each([
    [['GTE', '/x'], 'GET'],
    [['CONNECT', '/x'], 'CONNECT'],
    [['GET', 'x'], 'the request '],
    [['GET', '/é'], 'the request '],
    [['GET', '/a b'], 'the request '],
    [['GET', '/x', '--as', 'admin'], 'Allowed choices are anonymous, free, premium, pro'],
    [['GET', '/x', '--used-today', '-1'], 'must be a whole number'],
    [['GET', '/x', '--host', 'a b'], '--host'],
    [['GET', '/x', '--host', '*.example.com'], 'without wildcards'],
    [['GET', '/x', '--key'], '--key and --scopes need a caller with a plan'],
    [['GET', '/x', '--as', 'anonymous', '--scopes', 'a'], '--key and --scopes need a caller with a plan'],
    [
      ['GET', '/x', '--as', 'pro', '--scopes', 'a,B'],
      'must be a list of scopes such as data:read,data:write',
    ],
    [['GET', '/x', '--as', 'pro', '--scopes', ''], 'must be a list of scopes'],
    [['GET', '/x', '--user', '1', '--key'], "'--user <user>' cannot be used with option '--key'"],
    [['GET', '/x', '--user', '1', '--scopes', 'a'], "'--user <user>' cannot be used with option '--scopes"],
    [['GET'], "missing required argument 'path'"],
  ])('refuses %j with a message on standard error and exit code 2', async (words, sentence) => {
    const said = await peage(['explain', ...words])
    expect(said).toMatchObject({ exit: 2, stdout: '', stderr: expect.stringContaining(sentence) })
  })

  it('refuses an invalid configuration with the same message as check', async () => {
    const file = write('bad.yaml', 'routs: []\n')
    const { stdout } = await peage(['check', '-c', file])
    expect(stdout).toContain('bad.yaml:1:1  routs  ')
    expect(await peage(['explain', '-c', file, 'GET', '/x'])).toEqual({ exit: 2, stdout: '', stderr: stdout })
  })
})

describe('peage explain with an API key', () => {
  const file = write(
    'keys.yaml',
    `upstreams: { api: { targets: ["http://127.0.0.1:9000"] } }
routes:
  - { name: read, path: /read, upstream: api, scope: data:read, plans: [pro], identity_assertion: true }
  - { name: bearer, path: /bearer, upstream: api, bearer_only: true }
  - { name: plain, path: /plain, upstream: api }
  - { name: open, path: /open, upstream: api, auth: none }
`,
  )
  const explainFile = async (path: string, ...words: string[]) => {
    const { said } = await explain('GET', path, '-c', file, ...words)
    const outcomes = said.guards.map(({ guard, outcome }: Record<string, string>) => [guard, outcome])
    const refusal = said.guards.find(({ outcome }: { outcome: string }) => outcome === 'refuse')
    return { said, scope: new Map(outcomes).get('scope'), error: refusal?.error, status: said.status }
  }

  it.each([
    ['/read', ['pro', '--key'], 'pass', undefined],
    ['/read', ['pro', '--scopes', 'data:write,data:read'], 'pass', undefined],
    ['/read', ['pro', '--scopes', 'data:write'], 'refuse', 'scope_insufficient'],
    ['/read', ['free', '--scopes', 'data:write'], 'refuse', 'scope_insufficient'],
    ['/read', ['free', '--scopes', 'data:read'], 'pass', 'plan_insufficient'],
    ['/read', ['pro'], 'skip', undefined],
    ['/read', ['anonymous'], 'skip', 'token_invalid'],
    ['/bearer', ['pro', '--key'], 'refuse', 'bearer_required'],
    ['/bearer', ['pro', '--key', '--scopes', 'data:read'], 'refuse', 'bearer_required'],
    ['/bearer', ['pro'], 'skip', undefined],
    ['/plain', ['pro', '--key'], 'pass', undefined],
    ['/plain', ['pro', '--scopes', 'data:read'], 'refuse', 'scope_insufficient'],
    ['/plain', ['pro'], undefined, undefined],
    ['/open', ['pro', '--scopes', 'data:read'], 'skip', undefined],
    ['/open', ['pro'], undefined, undefined],
    ['/api/v1/user/api-token', ['pro', '--key'], undefined, undefined],
    ['/api/v1/auth/keys', ['pro', '--key'], 'refuse', 'bearer_required'],
    ['/api/v1/auth/usage', ['pro', '--scopes', 'data:read'], 'pass', undefined],
  ])(
    'shows, for the path %s and the caller %j, the outcome %s of the guard `scope` and the error %s',
    async (path, as, outcome, error) => {
      const shown = await explainFile(path, '--as', ...as)
      expect(shown).toMatchObject({ scope: outcome, error })
    },
  )

  it('shows the request headers that identify the key, and shows that the key itself is removed', async () => {
    const { said } = await explainFile('/read', '--as', 'pro', '--scopes', 'data:read,data:write')
    expect(said.headers.request.set).toMatchObject({
      'x-user-id': '3',
      'x-user-key-id': '00000000-0000-0000-0000-000000000000',
      'x-user-scopes': 'data:read data:write',
      'x-peage-assertion': '<signed by the gateway>',
    })
    expect(said.headers.request.remove).toContain('x-api-key')
    const unlimited = await explainFile('/read', '--as', 'pro', '--key')
    expect(unlimited.said.headers.request.set).toHaveProperty('x-user-key-id')
    expect(unlimited.said.headers.request.remove).toContain('x-user-scopes')
  })

  it('lists the guard `scope` between `rate_limit` and `plan`, and prints the scopes of the key in the first line', async () => {
    const { stdout } = await peage(['explain', 'GET', '/read', '-c', file, '--as', 'free', '--scopes', 'a,b'])
    expect(stdout.split('\n').slice(0, 7)).toEqual([
      'GET /read  at localhost, as free, API key with scopes a b',
      '',
      'route            read',
      'guards           authenticate  pass',
      '                 rate_limit    skip',
      '                 scope         refuse  403 scope_insufficient',
      '                 plan          skip',
    ])
    const unlimited = await peage(['explain', 'GET', '/plain', '-c', file, '--as', 'free', '--key'])
    expect(unlimited.stdout).toContain('as free, API key\n')
  })
})

describe('peage explain with configured plans', () => {
  const file = write(
    'plans.yaml',
    `plans:
  - { name: starter, quotas: { exports: 100/month, reports: 0 } }
  - { name: team, quotas: { exports: 1000/month, reports: 5/day } }
  - { name: scale, quotas: { exports: unlimited, reports: unlimited } }
upstreams: { api: { targets: ["http://127.0.0.1:9000"] } }
routes:
  - { name: exports, path: /exports, upstream: api, quota: exports }
  - { name: batch, path: /batch, upstream: api, quota: { name: exports, cost: 10 } }
  - { name: reports, path: /reports, upstream: api, quota: reports }
  - { name: plain, path: /plain, upstream: api, plans: [team, scale] }
`,
  )
  const outcome = async (path: string, ...words: string[]) => {
    const { said } = await explain('GET', path, '-c', file, ...words)
    return [said.status, said.guards.map(({ guard, outcome }: Record<string, string>) => [guard, outcome])]
  }
  const passed = (...others: [string, string][]) => [
    ['authenticate', 'pass'],
    ['rate_limit', 'skip'],
    ['plan', 'pass'],
    ['max_body', 'skip'],
    ['target', 'pass'],
    ...others,
    ['free_daily', 'skip'],
  ]

  it('adds the cost of the route to the uses from --used, and lists the guard `quota` only on routes with a quota', async () => {
    expect(await outcome('/exports', '--as', 'team', '--used', '999')).toEqual([
      null,
      passed(['quota', 'pass']),
    ])
    expect(await outcome('/exports', '--as', 'team', '--used', '1000')).toEqual([
      429,
      passed(['quota', 'refuse']),
    ])
    expect(await outcome('/batch', '--as', 'team', '--used', '990')).toEqual([
      null,
      passed(['quota', 'pass']),
    ])
    expect(await outcome('/batch', '--as', 'team', '--used', '991')).toEqual([
      429,
      passed(['quota', 'refuse']),
    ])
    expect((await outcome('/exports', '--as', 'scale', '--used', '9999999999'))[0]).toBe(null)
    expect((await outcome('/reports', '--as', 'starter'))[0]).toBe(403)
    expect(await outcome('/plain', '--as', 'team', '--used', '1000')).toEqual([null, passed()])
    const { stdout } = await peage(['explain', '-c', file, 'GET', '/batch', '--as', 'team', '--used', '991'])
    expect(stdout).toContain('as team, 991 used of the quota\n')
    expect(stdout).toContain('429 quota_exceeded: Quota atteint (plan team: 1000 exports/mois)\n')
  })

  it.each([
    ['--as', 'teams', 'Allowed choices are anonymous, starter, team, scale. Did you mean team?'],
    ['--as', 'free', 'Allowed choices are anonymous, starter, team, scale.'],
    ['--as', '', 'Allowed choices are anonymous, starter, team, scale.'],
    ['--used', '-1', 'must be a whole number'],
    ['--used', '1.5', 'must be a whole number'],
  ])('refuses %s %j with exit code 2, and prints what is allowed', async (option, value, sentence) => {
    const said = await peage(['explain', '-c', file, 'GET', '/plain', option, value])
    expect(said).toMatchObject({ exit: 2, stdout: '', stderr: expect.stringContaining(sentence) })
  })
})
