// Tests the output of `peage test` for cases in the configuration or in a file.
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

  it('prints the place, the expected result and the actual result of each failed case, and exits with 1', async () => {
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

  it('with --json, prints every case with its place and its differences', async () => {
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

  it('starts every case with all daily limits and rate limits unused', async () => {
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

  it('prints the lines of invalid cases, in the configuration or in a separate file, and exits with 2', async () => {
    const bad = `tests:
  - { request: gt /x, as: fre, expect: {} }
  - request: GET /x
    as: { plan: free, used: 1 }
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

  it.each([
    ['', '1:1  (file)  '],
    ['tests: []\nroutes: []', '2:1  routes  '],
    ['{}', '1:1  tests  '],
  ])('refuses a file that does not contain only test cases: %j', async (text, place) => {
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
