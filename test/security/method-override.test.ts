// Method overrides: frameworks let a field replace the method that the guards saw (Rails, Symfony, Express, ASP.NET).
import { describe, expect, it } from 'vitest'
import { alone } from '../support/setups.ts'
import { canonical } from './identity-names.ts'
import { expectRefusal } from './invariants.ts'
import { ask, requestBytes } from './raw-client.ts'
import { spellingsOf } from './spellings.ts'
import { stage } from './stage.ts'

describe('method overrides', () => {
  const at = stage(alone, {
    more: `  - { name: read-only, path: /read-only/*, upstream: app, auth: none, methods: [GET] }
  - { name: optional, path: /optional/*, upstream: app, auth: optional }
`,
  })
  const names = [
    ['x', 'http', 'method', 'override'],
    ['x', 'http', 'method'],
    ['x', 'method', 'override'],
  ]
  const spellings = names.flatMap(words => spellingsOf(...words))
  const overrides = new Set(names.map(words => words.join('-')))

  it.each([
    ['/api/v1/private/x', true],
    ['/public/x', false],
    ['/optional/x', false],
    ['/optional/x', true],
  ])(
    'on %s (with a credential: %s) none in any spelling reaches the upstream',
    async (target, authorized) => {
      const credential = authorized ? [`Authorization: Bearer ${at.user.access}`] : []
      for (const method of ['GET', 'POST']) {
        for (let i = 0; i < spellings.length; i += 50) {
          const lines = spellings.slice(i, i + 50).map(name => `${name}: DELETE`)
          const body = method === 'POST' ? ['Content-Length: 0'] : []
          const answer = await ask(
            at.gateway.url,
            requestBytes(method, target, [...credential, ...lines, ...body]),
          )
          expect(answer?.status).toBe(200)
        }
      }
      expect(at.upstream.seen.every(({ method }) => method === 'GET' || method === 'POST')).toBe(true)
      const left = at.upstream.seen.flatMap(({ fields }) =>
        fields.filter(([name]) => overrides.has(canonical(name))),
      )
      expect(left).toEqual([])
      await at.holds([])
    },
  )

  it('the method that a route is asked for is the one in the request line', async () => {
    for (const name of spellings) {
      const refused = await ask(
        at.gateway.url,
        requestBytes('DELETE', '/read-only/x', [`${name}: GET`, 'Content-Length: 0']),
      )
      expectRefusal(refused, 'method_not_allowed')
    }
    expect(at.upstream.seen).toEqual([])
    const login = await ask(
      at.gateway.url,
      requestBytes('GET', '/api/v1/auth/login', ['X-HTTP-Method-Override: POST']),
    )
    expectRefusal(login, 'method_not_allowed')
  })
})
