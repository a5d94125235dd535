// `allow_in_path` on a public catch-all route allows only the listed kinds of paths, and bypasses no guard of other
// routes.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { embeddedSetup } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { corpus } from './corpus.ts'
import { expectRefusal } from './invariants.ts'
import { ask, type RawAnswer, requestBytes } from './raw-client.ts'
import { stage } from './stage.ts'

describe('a catch-all route with every allowance, next to a guarded prefix', () => {
  const at = stage(embeddedSetup, {
    more: `  - { name: rest, path: /*, upstream: app, auth: none, allow_in_path: [semicolon, trailing_dot, double_encoding, double_slash] }
`,
  })

  async function send(target: string): Promise<RawAnswer> {
    const answer = await ask(at.gateway.url, requestBytes('GET', target), 'GET')
    if (answer === undefined) throw new Error('no response')
    expect([target, answer.body.toString().startsWith('secret')]).toEqual([target, false])
    return answer
  }

  it('gives none of the attack paths in the corpus access to the guarded prefix', async () => {
    at.upstream.reading = 'lax'
    const answers: RawAnswer[] = []
    for (const attack of corpus.paths) {
      const encoding = attack.raw_target_note === undefined ? 'latin1' : 'utf8'
      answers.push(await send(Buffer.from(attack.raw_target, encoding).toString('latin1')))
    }
    await at.holds(answers)
  })

  it.each(['/public/x;y', '/api/v1/auth/log%2569n', '/.well-known/jwks.json;x'])('refuses %s', async path => {
    expectRefusal(await send(path), 'path_invalid')
    expect(at.upstream.seen).toEqual([])
  })
})

describe('the allowances', () => {
  let upstream: Upstream
  let gateway: TestGateway
  const names = ['encoded_slash', 'semicolon', 'trailing_dot', 'double_encoding', 'double_slash']

  beforeAll(async () => {
    upstream = await startUpstream()
    const route = (name: string) =>
      `  - { name: ${name}, path: /${name}/:x, upstream: app, auth: none, allow_in_path: [${name}], methods: [GET] }`
    gateway = await startGateway(`upstreams:
  app: { targets: ['${upstream.url}'] }
routes:
${names.map(route).join('\n')}
  - { name: shut, path: /double_slash/shut/x, upstream: app, auth: none }
`)
  })
  beforeEach(() => {
    upstream.received.length = 0
  })
  afterAll(async () => {
    await gateway?.stop()
    await upstream?.close()
  })
  const send = (target: string, method = 'GET') =>
    ask(gateway.url, requestBytes(method, target, method === 'GET' ? [] : ['Content-Length: 0']), method)

  const needing: Record<string, string[]> = {
    encoded_slash: ['a%2fb', '%2F', 'a%2Fb?x=1'],
    semicolon: ['a;b=1', 'a%3bb', ';'],
    trailing_dot: ['a.', 'a%2E'],
    double_encoding: ['a%2541', '%252f', '%25252541'],
  }

  it.each(names)(
    'a route with %s forwards the paths that it allows unchanged, and refuses paths that need another allowance',
    async name => {
      for (const [needs, segments] of Object.entries(needing)) {
        for (const segment of segments) {
          upstream.received.length = 0
          const target = `/${name}/${segment}`
          const answer = await send(target)
          if (needs === name) {
            expect([target, answer?.status, upstream.received[0]?.url]).toEqual([target, 200, target])
          } else {
            expectRefusal(answer, 'path_invalid')
            expect(upstream.received).toEqual([])
          }
        }
      }
    },
  )

  it('double_slash makes a route ignore duplicate slashes for matching but forward them; other routes merge duplicate slashes', async () => {
    for (const target of ['//double_slash//x//', '/double_slash///x', '//double_slash/x?y=//z']) {
      upstream.received.length = 0
      expect([(await send(target))?.status, upstream.received[0]?.url]).toEqual([200, target])
    }
    upstream.received.length = 0
    await send('//semicolon//x')
    await send('/double_slash//shut//x')
    expect(upstream.received.map(({ url }) => url)).toEqual(['/semicolon/x', '/double_slash/shut/x'])
  })

  it('with encoded_slash, an encoded slash is part of a segment and does not separate segments', async () => {
    expectRefusal(await send('/encoded_slash%2fx'), 'path_invalid')
    expect((await send('/encoded_slash/a%2fb%2fc'))?.status).toBe(200)
    expectRefusal(await send('/encoded_slash/a%2fb/c'), 'path_invalid')
  })

  it('the allowance of a route is checked before its methods', async () => {
    expectRefusal(await send('/semicolon/a;b', 'POST'), 'method_not_allowed')
    expectRefusal(await send('/semicolon/a.', 'POST'), 'path_invalid')
    expectRefusal(await send('/nowhere/a;b'), 'path_invalid')
    expectRefusal(await send('/nowhere/a'), 'route_unknown')
  })
})
