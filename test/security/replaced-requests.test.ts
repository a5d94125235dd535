// Tests headers that replace the method or the path of a request. Rails, Symfony, Express, ASP.NET and IIS apply them
// after the guards have checked the original request (for example CVE-2018-14773).
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { guarded } from './corpus.ts'
import { canonical } from './identity-names.ts'
import { expectRefusal } from './invariants.ts'
import { ask, requestBytes } from './raw-client.ts'
import { spellingsOf } from './spellings.ts'
import { stage } from './stage.ts'

const methodNames = [
  ...[spellingsOf('x', 'http', 'method', 'override'), spellingsOf('x', 'http', 'method')].flat(),
  ...spellingsOf('x', 'method', 'override'),
]
const pathNames = [
  ...['url', 'uri', 'method', 'host'].flatMap(what => spellingsOf('x', 'original', what)),
  ...['url', 'path'].flatMap(what => spellingsOf('x', 'rewrite', what)),
  ...['X-Original-Anything', 'X-Rewrite-Anything'],
]

describe('headers that replace the method or the path', () => {
  const at = stage(embeddedSetup, {
    catchAll: true,
    settings: { server: ", trusted_proxies: ['127.0.0.0/8']" },
    more: `  - { name: read-only, path: /read-only/*, upstream: app, auth: none, methods: [GET] }
  - { name: optional, path: /api/v1/optional/*, upstream: app, auth: optional }
`,
  })

  it.each([
    [`${guarded}/x`, true],
    ['/public/x', false],
    ['/rest', false],
    ['/api/v1/optional/x', false],
    ['/api/v1/optional/x', true],
  ])(
    'never reach the upstream, even if a trusted proxy sends them to %s (with a credential: %s)',
    async (target, authorized) => {
      const credential = authorized ? [`Authorization: Bearer ${at.user.access}`] : []
      const fields = [
        ...methodNames.map(name => `${name}: DELETE`),
        ...pathNames.map(name => `${name}: ${guarded}/secret`),
      ]
      for (const method of ['GET', 'POST']) {
        const body = method === 'POST' ? ['Content-Length: 0'] : []
        for (let i = 0; i < fields.length; i += 50) {
          const lines = [...credential, ...fields.slice(i, i + 50), ...body]
          expect((await ask(at.gateway.url, requestBytes(method, target, lines)))?.status).toBe(200)
        }
      }
      const replacing = /^x-(?:original-|rewrite-|http-method(?:-override)?$|method-override$)/
      const left = at.upstream.seen.flatMap(({ fields }) =>
        fields.filter(([name]) => replacing.test(canonical(name))),
      )
      expect(left).toEqual([])
      for (const { method, url } of at.upstream.seen)
        expect([['GET', 'POST'].includes(method), url]).toEqual([true, target])
      await at.holds([])
    },
  )

  it('do not change the method that a route checks', async () => {
    for (const name of methodNames) {
      const lines = [`${name}: GET`, 'Content-Length: 0']
      expectRefusal(
        await ask(at.gateway.url, requestBytes('DELETE', '/read-only/x', lines)),
        'method_not_allowed',
      )
    }
    const login = requestBytes('GET', '/api/v1/auth/login', ['X-HTTP-Method-Override: POST'])
    expectRefusal(await ask(at.gateway.url, login), 'method_not_allowed')
    expect(at.upstream.seen).toEqual([])
  })

  it('give no access to a guarded path', async () => {
    for (const name of pathNames) {
      const answer = await ask(at.gateway.url, requestBytes('GET', `${guarded}/x`, [`${name}: /public/x`]))
      expect(answer?.status).toBe(401)
    }
    expect(at.upstream.seen).toEqual([])
  })
})
