// Tests the output of `peage test` for test cases in the configuration or in a separate file.
import { describe, expect, it } from 'vitest'
import { commandLine, committed } from './peage.ts'

const { peage, write } = commandLine()

const gateway = `upstreams:
  courses: { targets: ["http://127.0.0.1:9000", "http://127.0.0.1:9001"] }
routes:
  - { name: courses, path: /courses/*, upstream: courses, free_daily: true }
  - { name: reports, path: /reports, upstream: courses, plans: [pro], max_body: 1KiB, hosts: [api.example.com] }
  - { name: open, path: /open, upstream: courses, auth: none }
`
const verified = `upstreams: { courses: { targets: ["http://127.0.0.1:9000"] } }
routes: [{ name: checked, path: /checked, upstream: courses, plans: [premium, pro], verified: true }]
`
const config = write('plain.yaml', gateway)

describe('peage test', () => {
  it('exits with 0 if all cases pass, and prints the routes and guards that no case reached', async () => {
    const file = write(
      'good.yaml',
      `${gateway}tests:
  - request: GET /courses/1
    as: { plan: free, used_today: 1 }
    expect: { status: 429, route: courses, error: daily_limit_reached }
  - { request: GET /courses/1, as: pro, expect: { route: courses, upstream: courses } }
  - { request: GET /courses/1?a=b, as: free, expect: { upstream: "http://127.0.0.1:9001/courses/1?a=b" } }
  - { request: POST /reports, host: api.example.com, as: { plan: premium }, expect: { status: 403 } }
  - { request: GET /reports, expect: { status: 404, error: route_unknown } }
  - { request: POST /api/v1/user/webhook, as: free, expect: { status: 403 } }
`,
    )
    expect(await peage(['test', '-c', file])).toEqual({
      exit: 0,
      stdout: '6 passed, 0 failed\nnot reached: route open, max_body of reports, target of reports\n',
      stderr: '',
    })
    write('gateway.yaml', committed)
    expect(await peage(['test'])).toMatchObject({
      exit: 0,
      stdout: expect.stringMatching(/^\d+ passed, 0 failed\nthe test cases reached every route and guard\n$/),
    })
  })

  it('simulates users with a verified email, unless the case sets `verified: false`', async () => {
    const file = write(
      'verified.yaml',
      `${verified}tests:
  - { request: GET /checked, as: pro, expect: { route: checked, upstream: courses } }
  - { request: GET /checked, as: { plan: pro }, expect: { route: checked, upstream: courses } }
  - { request: GET /checked, as: { plan: pro, verified: true }, expect: { upstream: courses } }
  - { request: GET /checked, as: { plan: pro, verified: false }, expect: { status: 403, error: email_unverified } }
  - { request: GET /checked, as: { plan: free, verified: false }, expect: { status: 403, error: plan_insufficient } }
`,
    )
    expect(await peage(['test', '-c', file])).toMatchObject({ exit: 0, stderr: '' })
    const { stdout } = await peage(['explain', '-c', file, 'GET', '/checked', '--as', 'premium', '--json'])
    expect(JSON.parse(stdout).guards).toContainEqual({ guard: 'verified', outcome: 'pass' })
  })

  it('simulates API keys, and only a case with an API key reaches the guard `scope`', async () => {
    const routes = `upstreams: { data: { targets: ["http://127.0.0.1:9000"] } }
routes:
  - { name: read, path: /read, upstream: data, scope: data:read }
  - { name: bearer, path: /bearer, upstream: data, bearer_only: true }
  - { name: plain, path: /plain, upstream: data }
tests:
  - { request: GET /read, as: pro, expect: { upstream: data } }
  - { request: GET /bearer, as: pro, expect: { upstream: data } }
  - { request: GET /plain, as: { plan: pro, scopes: [data:read] }, expect: { status: 403, error: scope_insufficient } }
  - { request: GET /plain, as: { plan: pro, key: true }, expect: { upstream: data } }
`
    const withoutKeys = write('without-keys.yaml', routes)
    expect(await peage(['test', '-c', withoutKeys])).toMatchObject({
      exit: 0,
      stdout: '4 passed, 0 failed\nnot reached: scope of read, scope of bearer\n',
    })
    const withKeys = write(
      'with-keys.yaml',
      `${routes}  - { request: GET /read, as: { plan: pro, scopes: [data:read] }, expect: { route: read, upstream: data } }
  - { request: GET /bearer, as: { plan: pro, key: true }, expect: { error: bearer_required } }
  - { request: GET /read, as: { plan: pro, key: true, scopes: [] }, expect: { status: 403 } }
  - { request: GET /read, as: { plan: pro, scopes: [b, c] }, expect: { route: plain } }
  - { request: GET /bearer, as: { plan: pro, key: true }, expect: { status: 401 } }
`,
    )
    expect(await peage(['test', '-c', withKeys])).toMatchObject({
      exit: 1,
      stdout: [
        'with-keys.yaml:14:5  GET /read as pro (API key with scopes b c)  expected route plain, got read',
        'with-keys.yaml:15:5  GET /bearer as pro (API key)  expected status 401, got 403',
        '7 passed, 2 failed',
        'the test cases reached every route and guard',
        '',
      ].join('\n'),
    })
  })

  it('prints the file, the line, the expected result and the actual result of each failed case, and exits with 1', async () => {
    const cases = write(
      'cases.yaml',
      `tests:
  - { request: GET /open, expect: { route: open, upstream: courses } }
  - request: GET /courses/1
    as: { plan: free, used_today: 1 }
    expect: { route: open, upstream: courses, status: 200 }
  - { request: GET /reports, as: pro, host: api.example.com, expect: { status: 403, error: plan_insufficient } }
  -   request: GET /courses
      as: pro
      expect: { upstream: "http://127.0.0.1:9002/courses" }
`,
    )
    expect(await peage(['test', '-c', config, cases])).toEqual({
      exit: 1,
      stdout: [
        'cases.yaml:3:5  GET /courses/1 as free (1 used today)  expected status 200, got 429; expected route open, got courses; expected upstream courses, got none (not forwarded)',
        'cases.yaml:6:5  GET /reports at api.example.com as pro  expected status 403, got none (not refused); expected error plan_insufficient, got none (not refused)',
        'cases.yaml:7:7  GET /courses as pro  expected upstream http://127.0.0.1:9002/courses, got http://127.0.0.1:9000/courses',
        '1 passed, 3 failed',
        'the test cases reached every route and guard',
        '',
      ].join('\n'),
      stderr: '',
    })
  })

  it('fails a case that expects a target of weight 0, because this target never receives requests', async () => {
    const file = write(
      'weightless.yaml',
      `upstreams: { a: { targets: ["http://a", { url: "http://off", weight: 0 }] } }
routes: [{ path: /x, upstream: a, auth: none }]
tests: [{ request: GET /x, expect: { upstream: "http://off/x" } }]
`,
    )
    expect(await peage(['test', '-c', file])).toMatchObject({
      exit: 1,
      stdout: expect.stringContaining('expected upstream http://off/x, got http://a/x\n'),
    })
  })

  it('selects routes with wildcard hosts by the host of the test case', async () => {
    const file = write(
      'wildcards.yaml',
      `${gateway}  - { name: tenants, path: /open, upstream: courses, hosts: ["*.example.com"], auth: none }
tests:
  - { request: GET /open, host: A.b.example.com., expect: { route: tenants } }
  - { request: GET /open, host: example.com, expect: { route: open } }
  - { request: GET /open, expect: { route: open } }
`,
    )
    expect(await peage(['test', '-c', file])).toMatchObject({
      exit: 0,
      stdout: expect.stringMatching(/^3 passed, 0 failed/),
    })
  })

  it('with --json, prints each case with its line, and with the differences between the expected and the actual result', async () => {
    const file = write(
      'json.yaml',
      `${gateway}tests:
  - { request: GET /open, host: API.example.com, expect: { route: open } }
  - { request: GET /open, as: { plan: free, used_today: 3 }, expect: { route: courses } }
`,
    )
    const { exit, stdout } = await peage(['test', '-c', file, '--json'])
    expect(exit).toBe(1)
    const at = { file, column: 5 }
    expect(JSON.parse(stdout)).toEqual({
      passed: 1,
      failed: 1,
      cases: [
        {
          ...{ ...at, line: 8, ok: true, misses: [] },
          request: { method: 'GET', path: '/open', host: 'api.example.com', as: 'anonymous' },
        },
        {
          ...{ ...at, line: 9, ok: false, misses: [{ what: 'route', expected: 'courses', came: 'open' }] },
          request: { method: 'GET', path: '/open', as: { plan: 'free', used_today: 3 } },
        },
      ],
      unreached: { routes: ['courses', 'reports'], guards: [] },
    })
  })

  it('does not let a case use up the daily limit or the rate limit of a later case', async () => {
    const one = '  - { request: GET /a, as: free, expect: { upstream: a } }\n'
    const file = write(
      'many.yaml',
      `upstreams: { a: { targets: ["http://a"] } }
routes: [{ path: /a, upstream: a, free_daily: true, rate_limit: 1/1m }]
tests:\n${one.repeat(50)}`,
    )
    expect(await peage(['test', '-c', file])).toMatchObject({
      exit: 0,
      stdout: expect.stringContaining('50 passed'),
    })
  })

  it('prints the line numbers of invalid cases, in the configuration or in a separate file, and exits with 2', async () => {
    const bad = `tests:
  - { request: gt /x, as: fre, expect: {} }
  - request: GET /x
    as: { plan: free, uses: 1 }
    expect: { status: 1, rout: x }
  - { request: GET nowhere, host: "a b", expect: { route: 7 } }
  - { as: pro, expect: { status: 404 } }
`
    const within = await peage(['test', '-c', write('bad.yaml', gateway + bad)])
    const { stdout } = await peage(['check', '-c', 'bad.yaml'])
    expect(within).toEqual({ exit: 2, stdout: '', stderr: stdout })
    const lines = [8, 8, 8, 10, 11, 11, 12, 12, 12, 13]
    expect(stdout.match(/^bad\.yaml:\d+(?=:)/gm)).toEqual(lines.map(line => `bad.yaml:${line}`))
    const alone = await peage(['test', '-c', config, write('bad-cases.yaml', bad)])
    const sixLinesUp = (_: string, line: string) => `bad-cases.yaml:${Number(line) - 6}:`
    expect(alone).toEqual({ exit: 2, stdout: '', stderr: stdout.replace(/^bad\.yaml:(\d+):/gm, sixLinesUp) })
  })

  it('tests quotas with the configured plans, and refuses cases with unknown plans, in the configuration or in a separate file', async () => {
    const quotas = `plans:
  - { name: starter, quotas: { exports: 0 } }
  - { name: team, quotas: { exports: 1000/month } }
upstreams: { a: { targets: ["http://a"] } }
routes:
  - { name: exports, path: /exports, upstream: a, quota: { name: exports, cost: 2 } }
`
    const good = `tests:
  - { request: GET /exports, as: { plan: team, used: 998 }, expect: { upstream: a } }
  - { request: GET /exports, as: team, expect: { upstream: a } }
`
    const full = `  - { request: GET /exports, as: { plan: team, used: 999 }, expect: { status: 429, error: quota_exceeded } }
  - { request: GET /exports, as: starter, expect: { status: 403, error: plan_insufficient } }
`
    const wrong = '  - { request: GET /exports, as: { plan: team, used: 1000 }, expect: { upstream: a } }\n'
    const unknown =
      'tests: [{ request: GET /exports, as: { plan: teams }, expect: { status: 429 } }, { request: GET /x, as: free, expect: { status: 404 } }]\n'
    const plain = write('quotas-only.yaml', quotas)
    const test = (...words: string[]) => peage(['test', '-c', ...words])
    expect(await test(write('quotas.yaml', quotas + good + full))).toEqual({
      exit: 0,
      stdout: '4 passed, 0 failed\nthe test cases reached every route and guard\n',
      stderr: '',
    })
    expect((await test(plain, write('quota-cases.yaml', `tests:\n${wrong}`))).stdout).toContain(
      'quota-cases.yaml:2:5  GET /exports as team (1000 used of the quota)  expected upstream a, got none (not forwarded)\n',
    )
    const lines = (file: string, line: number) =>
      `${file}:${line}:46  tests[0].as.plan  unknown plan; did you mean team?\n` +
      `${file}:${line}:105  tests[1].as  unknown plan; declared plans: starter, team\n`
    expect(await test(write('unknown.yaml', quotas + unknown))).toEqual({
      exit: 2,
      stdout: '',
      stderr: lines('unknown.yaml', 7),
    })
    expect(await test(plain, write('unknown-cases.yaml', unknown))).toEqual({
      exit: 2,
      stdout: '',
      stderr: lines('unknown-cases.yaml', 1),
    })
    const negative = 'tests: [{ request: GET /x, as: { plan: team, used: -1 }, expect: { status: 404 } }]\n'
    expect((await test(plain, write('negative.yaml', negative))).stderr).toContain(
      'tests[0].as.used  must be at least 0',
    )
  })

  it.each([
    ['', '1:1  (file)  '],
    ['tests: []\nroutes: []', '2:1  routes  '],
    ['{}', '1:1  tests  '],
  ])('refuses a file without the key `tests`, or with another key: %j', async (text, place) => {
    const { exit, stdout, stderr } = await peage(['test', '-c', config, write('odd.yaml', text)])
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: '' })
    expect(stderr.split(place)).toEqual(['odd.yaml:', expect.stringMatching(/^.+\n$/)])
  })

  it('exits with 1 if there are no cases, and with 2 if the file does not exist', async () => {
    expect(await peage(['test', '-c', config])).toEqual({
      exit: 1,
      stdout: '',
      stderr: 'error: plain.yaml contains no test cases\n',
    })
    expect(await peage(['test', '-c', config, write('none.yaml', 'tests: []')])).toMatchObject({ exit: 1 })
    expect(await peage(['test', '-c', config, 'gone.yaml'])).toMatchObject({ exit: 2 })
  })
})
