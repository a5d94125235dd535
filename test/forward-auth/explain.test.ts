// Tests `peage explain` and `peage test` for routes without an upstream. Only the questions of proxies use these routes
// (docs/forward-auth.md). So the results must equal the gateway's response to a question.
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { createExplain, toDocument, toExplainRequest } from '../../src/explain/explain.ts'
import { commandLine } from '../commands/peage.ts'
import { value } from '../security/raw-client.ts'
import { newUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { codeOf, identityFields, inFields, path, send } from './ask.ts'

const server = 'server: { forward_auth: { from: [127.0.0.1] } }\n'
const routes = `upstreams: { app: { targets: ["http://127.0.0.1:9000"] } }
routes:
  - { name: public, path: /public/*, auth: none }
  - { name: reports, path: /reports/*, plans: [pro], forward_email: true }
  - { name: daily, path: /daily/*, free_daily: true }
  - { name: posted, path: /posted, methods: [POST] }
  - { name: slashes, path: /slashes/*, auth: none, allow_in_path: [double_slash] }
  - { name: spaced, path: /spaced/*, auth: none, allow_in_path: [semicolon] }
  - { name: mixed, path: /mixed, methods: [GET] }
  - { name: mixed-upstream, path: /mixed, methods: [POST], upstream: app }
  - { name: rest, path: /rest/*, upstream: app }
`

describe('peage explain', () => {
  const { peage, write } = commandLine()
  write('gateway.yaml', server + routes)
  const explain = async (...words: string[]) => {
    const { exit, stdout } = await peage(['explain', ...words, '--json'])
    return { exit, ...JSON.parse(stdout) }
  }

  it('shows the status 200 and no upstream if a request is allowed on a route without an upstream', async () => {
    expect(await explain('GET', '/reports/1', '--as', 'pro')).toMatchObject({
      exit: 0,
      route: 'reports',
      status: 200,
      upstream: null,
      guards: expect.arrayContaining([
        { guard: 'authenticate', outcome: 'pass' },
        { guard: 'plan', outcome: 'pass' },
        { guard: 'target', outcome: 'skip' },
      ]),
      headers: {
        request: { set: {}, remove: [] },
        response: { set: { 'x-user-id': '3', 'x-user-plan': 'pro', 'x-user-email': 'pro@example.com' } },
      },
    })
    expect(await explain('GET', '/rest/x', '--as', 'pro')).toMatchObject({
      status: null,
      upstream: { name: 'app' },
    })
  })

  it('prints that the gateway sends the 200 response to the proxy', async () => {
    const { stdout } = await peage(['explain', 'GET', '/public/x'])
    expect(stdout).toMatch(/^response +200 to the proxy that asks \(server.forward_auth\)$/m)
    expect(stdout).not.toMatch(/^upstream/m)
  })

  it('shows 404 for the path to which proxies send questions', async () => {
    expect(await explain('GET', path)).toMatchObject({ exit: 1, route: null, status: 404 })
    expect(await explain('GET', `${path}/public/x`)).toMatchObject({ exit: 1, route: null, status: 404 })
  })

  it('predicts the response of the gateway to a question about a route without an upstream', async () => {
    const gateway = await startGateway(routes, undefined, {
      server: ', forward_auth: { from: [127.0.0.1] }',
      // The clock advances by one day for each request. So the tokens must stay valid for a long time.
      auth: ', access_token_ttl: 3000d, refresh_token_ttl: 3000d',
    })
    try {
      const loaded = loadConfig({ file: 'g', env: {}, readFile: () => server + routes })
      if ('problems' in loaded) throw new Error('invalid configuration')
      const explained = await createExplain(loaded.config, gateway.clock)
      const users = { free: await newUser(gateway), pro: await newUser(gateway, 'pro') }
      for (const as of ['anonymous', 'free', 'pro'] as const) {
        for (const method of ['GET', 'POST', 'DELETE']) {
          for (const target of [
            ...['/public/x', '/public//x', '/public/..', '/reports/1', '/daily/1', '/posted', '/slashes//x'],
            ...['/spaced/a;b', '/spaced/a.', '/mixed', '/nothing', '/reports//1', '/REPORTS/1/?q'],
          ]) {
            // This route has an upstream. So `explain` describes the request of a client, not a question.
            if (target === '/mixed' && method === 'POST') continue
            gateway.clock.at += 86_400_000
            const lines = as === 'anonymous' ? [] : [`Authorization: Bearer ${users[as].access}`]
            const answer = await send(gateway.url, inFields({ method, target, lines }))
            const explanation = await explained(toExplainRequest({ request: { method, path: target }, as }))
            const { status, headers } = toDocument(explanation)
            const name = `${method} ${target} as ${as}`
            // No route for this path allows DELETE, and one of these routes has an upstream. So `explain` may describe
            // the request of a client, not a question.
            if (target === '/mixed' && method === 'DELETE') continue
            expect([name, status, explanation.refusal?.code]).toEqual([
              name,
              answer.status,
              value(answer, 'x-peage-error'),
            ])
            if (status !== 200) continue
            for (const field of identityFields.filter(field => !/id|email/.test(field)))
              expect([name, field, headers.response.set[field]]).toEqual([name, field, value(answer, field)])
          }
        }
      }
      expect(codeOf(await send(gateway.url, inFields({ method: 'DELETE', target: '/mixed' })))).toMatch(
        /^405/,
      )
    } finally {
      await gateway.stop()
    }
  }, 60_000)
})

describe('peage test', () => {
  it('accepts the status 200 for a route without an upstream, and does not report its guard `target` as untested', async () => {
    const { peage, write } = commandLine()
    const cases = `tests:
  - { request: GET /reports/1, as: pro, expect: { status: 200, route: reports } }
  - { request: GET /reports/1, as: free, expect: { status: 403, error: plan_insufficient } }
  - { request: GET /public//x, expect: { status: 400 } }
  - { request: GET /daily/1, as: { plan: free, used_today: 1 }, expect: { status: 429 } }
  - { request: GET /rest/x, as: pro, expect: { route: rest, upstream: app } }
  - { request: GET /public/x, expect: { upstream: app } }
`
    write('gateway.yaml', server + routes + cases)
    const { exit, stdout } = await peage(['test'])
    expect(exit).toBe(1)
    expect(stdout).toMatch(/5 passed, 1 failed/)
    expect(stdout).not.toMatch(/target of (reports|public|daily)/)
  })
})
