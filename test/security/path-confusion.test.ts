// Paths that a guard and an upstream could interpret differently (corpus `paths` and more).
import { describe, expect, it } from 'vitest'
import { embeddedSetup } from '../support/setups.ts'
import { corpus, guarded, type PathAttack } from './corpus.ts'
import { ask, type RawAnswer, requestBytes, value } from './raw-client.ts'
import { stage } from './stage.ts'

/**
 * Expects the same status code for several targets. In `targets`, white space separates the targets. Each of the
 * `others` is one target, which can contain white space.
 */
const all = (status: number, targets: string, ...others: string[]) =>
  [...targets.trim().split(/\s+/), ...others].map((target): [string, number[]] => [target, [status]])

/** More targets of the same kinds as in the corpus. */
const more: [target: string, statuses: number[]][] = [
  // The guarded prefix in many spellings.
  ...all(
    401,
    `
      /api/v1/private/ /api/v1/private// /api/v1/private/?x=1 /api/v1/private? /API/v1/pRiVaTe/X
      /Api//V1///Private/x /%61%70%69/%76%31/%70%72%69%76%61%74%65 /%41PI/v%31/PRIVAT%45/x
      /api/v1/private/%e2%82%ac /api/v1/private/~x ///api/v1/private //api//v1//private//
      HTTP://GW.TEST/API/V1/PRIVATE http://gw.test:80/api/v1/private
      https://gw.test/api/v1/private/x?y=http://gw.test/public http://gw.test//api/v1/private
    `,
  ),
  // Dot segments, raw and encoded, in every position.
  ...all(
    400,
    `
      /. /.. /../ /public/. /public/./ /public/x/.. /public/../public/../api/v1/private
      /public/.%2e/api/v1/private /public/%2e%2e%2fapi/v1/private /public/%2E%2E%5Capi%5Cv1%5Cprivate
      /public/%252E%252E/api/v1/private /public/%25%32%65%25%32%65/api/v1/private
      /public/%25252e%25252e/api/v1/private /public/..%00/api/v1/private /public/..%09/api/v1/private
      /public/.../api/v1/private /public/.%20./api/v1/private /public/..%20/api/v1/private
      /public/..%c0%af/api/v1/private /public/%c0%ae%c0%ae/api/v1/private
      /public/%u002e%u002e/api/v1/private /public/%2%65%2%65/api/v1/private /api/v1/%2e/private
      /api/v1/x/%2e%2e/private /api/./v1/private /api/v1/private/. /api/v1/private/../.. /./ /.%2f
    `,
    '/public/.. /api/v1/private',
  ),
  // Characters that some servers treat as a slash or as the end of the path.
  ...all(
    400,
    `
      /api/v1/private%2f /api/v1/private%5c /api/v1/private%3f /api/v1/private%3F/x /api/v1/private%23x
      /api/v1/private%3Bjsessionid=1 /api/v1/private; /api;x/v1;y/private;z /public;/../api/v1/private
      /public/x%3b/y /api%2Fv1%2Fprivate /api%252fv1%252fprivate /api%5Cv1%5Cprivate
      /public#/../api/v1/private /public/x# /public?x#/../api/v1/private /api/v1/private%0d
      /api/v1/private%7f /api/v1/private%1F /api/v1/private%c2%85 /api/v1/private%09 /api/v1/private..
      /api/v1/private.%20 /api/v1/private%2e /api/v1/private%20/ /api/v1/private./x /public./x
    `,
    '/api\\v1\\private',
    '/public/x\\..\\..\\api/v1/private',
    '/api/v1/private. ',
  ),
  // Escapes and bytes that are broken, overlong or not UTF-8.
  ...all(
    400,
    `
      /api/v1/private%2 /api/v1/private%g1 /api/v1/private%%70 /% /%c0%80 /public/%c1%9c..
      /public/%ed%a0%80 /public/%f5%80%80%80 /public/%fe /public/%80 /api/v1/%2570rivate
      /api/v1/%25%37%30rivate /api/v1/privat%2565 /public/100%25%32%35
    `,
    '/public/\xe9',
    '/public/\xc3\xa9',
  ),
  // Targets without a path, with another scheme, or with a host that differs from the Host header.
  ...all(
    400,
    `
      * public api/v1/private ?x gw.test:80 http:///api/v1/private http:// http:/public
      http://gw.test@evil.example/public http://user:pass@gw.test/api/v1/private http://gw.test#/public
      ftp://gw.test/public file:///api/v1/private javascript:alert(1) http://evil.example/public
      http://127.0.0.1/public/x http://gw.test.evil.example/public http://[::1]/public
      http://gw.test:99999999/public
    `,
    'http://gw.test\\@evil.example/public',
  ),
  // Public paths with only one interpretation, which must be accepted.
  ...all(
    200,
    `
      /public /public/ /PUBLIC/X /public//x /public/.well-known/x /public/..x /public/a.b /public/x..y
      /public/%2ex /public/a%20b /public/%E2%82%AC /public/100%25 /public/%25zz /public/a:b@c!$&'()*+,=~_-
      /public/x?/../../api/v1/private /public/x?%00 /public?http://evil.example/ http://gw.test/public/x
    `,
    '/public/x?a=%2e%2e%2f&b=../..;c=\\|[]{}^`"<>',
  ),
]

const attacks: PathAttack[] = [
  ...corpus.paths,
  ...more.map(([raw_target, allowed_status], index) => ({
    id: `more-${index + 1}`,
    class: 'more',
    raw_target,
    allowed_status,
    note: '',
  })),
]

/**
 * The corpus expects that the gateway refuses this path. Péage accepts it, because the path is public after duplicate
 * slashes are merged.
 */
const acceptedAnyway = new Map([['rewrite-escape-10', 200]])

describe.each([
  ['without other routes', false],
  ['next to a public catch-all route', true],
])('with a guarded prefix %s,', (_, catchAll) => {
  const at = stage(embeddedSetup, { catchAll })

  /**
   * The allowed status codes. With a catch-all route, a path that is otherwise unknown (404) may also get a 200. In
   * this case, `at.holds` still checks the invariants.
   */
  const allowed = (attack: PathAttack) => [
    ...attack.allowed_status,
    ...(catchAll && attack.allowed_status.includes(404) ? [200] : []),
    ...[acceptedAnyway.get(attack.id) ?? []].flat(),
  ]

  async function send(method: string, attack: PathAttack, lines: string[] = []): Promise<RawAnswer> {
    const encoding = attack.raw_target_note === undefined ? 'latin1' : 'utf8'
    const target = Buffer.from(attack.raw_target, encoding).toString('latin1')
    const answer = await ask(at.gateway.url, requestBytes(method, target, lines), method)
    if (answer === undefined) throw new Error('no response')
    return answer
  }

  describe.each(['plain', 'lax'] as const)('and an upstream that uses %s rules,', reading => {
    it.each(attacks)('$id: without a credential, $raw_target does not reach the prefix', async attack => {
      at.upstream.reading = reading
      const answer = await send('GET', attack)
      expect(allowed(attack)).toContain(answer.status)
      expect(answer.body.toString()).not.toMatch(/^secret/)
      await at.holds([answer])
    })

    it('requests with methods other than GET do not reach the prefix without a credential', async () => {
      at.upstream.reading = reading
      const heard: RawAnswer[] = []
      for (const [index, attack] of attacks.entries()) {
        const method = ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'TRACE'][index % 7] as string
        const answer = await send(method, attack, ['Content-Length: 0'])
        expect([attack.id, allowed(attack)]).toEqual([attack.id, expect.arrayContaining([answer.status])])
        expect(answer.body.toString()).not.toMatch(/^secret/)
        heard.push(answer)
      }
      await at.holds(heard)
    })
  })

  it('each spelling that gets a 401 without a credential reaches the prefix with a credential', async () => {
    at.upstream.reading = 'lax'
    const credential = [`Authorization: Bearer ${at.user.access}`]
    const spellings = attacks.filter(attack => attack.allowed_status.join() === '401')
    expect(spellings.length).toBeGreaterThan(15)
    for (const attack of spellings) {
      const answer = await send('GET', attack, credential)
      expect([attack.raw_target, answer.status, answer.body.toString()]).toEqual([
        attack.raw_target,
        200,
        `secret for ${at.user.id}`,
      ])
      expect(value(answer, 'x-peage-error')).toBeUndefined()
    }
    await at.holds([])
  })
})

it('the corpus has all 94 paths', () => {
  expect(corpus.paths).toHaveLength(94)
  expect(corpus.paths.every(attack => attack.raw_target !== '' && guarded.startsWith('/'))).toBe(true)
})
