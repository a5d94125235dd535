// Attacks with headers: forged identities, moved credentials and removed gateway headers (corpus `headers`).
import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { describeOverSetups } from '../support/setups.ts'
import { corpus, expand, guarded, type HeaderAttack } from './corpus.ts'
import { attacks } from './header-cases.ts'
import { expectRefusal } from './invariants.ts'
import { ask, chunked, type RawAnswer, requestBytes } from './raw-client.ts'
import { stage } from './stage.ts'

describeOverSetups('forged headers', setup => {
  const at = stage(setup)

  it.each(attacks)('$id: $desc (expected: $expect)', async attack => {
    const key = await keyOf(attack)
    const placeholders: Record<string, string> = {
      VALID: key ?? at.user.access,
      OTHER: at.other.access,
      INVALID: 'invalid',
      KEY: key ?? '',
      REFRESH: at.user.refresh,
    }
    const lines = attack.lines.map(line =>
      expand(line).replace(/<([A-Z]+)>/g, (_, name: string) => placeholders[name] as string),
    )
    const modes = { both: ['none', 'valid'], none: ['none'], valid: ['valid'], special: ['special'] }[
      attack.auth
    ]
    for (const mode of modes) await run(attack, lines, mode)
  })

  /** Creates an API key if the case uses one. In these cases, `<VALID>` stands for the key. */
  async function keyOf({ lines }: HeaderAttack): Promise<string | undefined> {
    if (!lines.some(line => /api.key/i.test(line))) return undefined
    const key = `peage_${'k'.repeat(36)}`
    await at.gateway.sql(
      `insert into api_tokens (user_id, token_hash) values ($1, $2)
         on conflict do nothing`,
      [at.user.id, createHash('sha256').update(key).digest('hex')],
    )
    return key
  }

  async function run(attack: HeaderAttack, lines: string[], mode: string): Promise<void> {
    at.upstream.seen.length = 0
    const credential = mode === 'valid' ? [`Authorization: Bearer ${at.user.access}`] : []
    const hasTrailers = lines.some(line => /^transfer-encoding:/i.test(line))
    const isGuarded = mode !== 'none' || isRefusedWith401(attack)
    const target = isGuarded ? `${guarded}/x` : '/public/x'
    const body = hasTrailers ? trailed : attack.expect === 'framing intact' ? 'five!' : ''
    const length = body === '' || hasTrailers ? [] : ['Content-Length: 5']
    const answer = await ask(
      at.gateway.url,
      requestBytes(body === '' ? 'GET' : 'POST', target, [...credential, ...lines, ...length], body),
    )
    if (answer === undefined) throw new Error('no response')
    await at.holds([answer])
    judge(attack, lines, answer)
    if (mode === 'valid' && answer.status === 200) {
      expect(answer.body.toString()).toBe(`secret for ${at.user.id}`)
      expect(received('x-user-id')).toEqual([String(at.user.id)])
      expect(received('x-user-plan')).toEqual(['premium'])
    }
    if (mode === 'none' && answer.status === 200) expect(answer.body.toString()).toBe('public for nobody')
  }

  const isRefusedWith401 = ({ auth, expect }: HeaderAttack) => auth === 'none' && /^401/.test(expect)
  const received = (name: string) =>
    at.upstream.seen.flatMap(({ fields }) =>
      fields.filter(([other]) => other.toLowerCase() === name).map(([, text]) => text),
    )

  function judge(attack: HeaderAttack, lines: string[], answer: RawAnswer): void {
    const judged = judges.find(([expectation]) => attack.expect.startsWith(expectation))
    if (judged === undefined) throw new Error(`no check for the expectation "${attack.expect}"`)
    judged[1](answer, lines)
  }

  const forwardedOnce = (answer: RawAnswer) => {
    expect(answer.status).toBe(200)
    expect(at.upstream.seen).toHaveLength(1)
  }
  const refusedWith = (code: string) => (answer: RawAnswer) => {
    expectRefusal(answer, code)
    expect(at.upstream.seen).toEqual([])
  }

  /**
   * Maps each expectation text of the corpus to its check. The checks do not cover identity and framing, because
   * `at.holds` checks both.
   */
  const judges: [string, (answer: RawAnswer, lines: string[]) => void][] = [
    ['dropped', forwardedOnce],
    ['rejected_400 or upstream Host', refusedWith('request_invalid')],
    ['rejected_400', refusedWith('request_invalid')],
    ['rejected_431', refusedWith('headers_too_large')],
    [
      'forwarded as opaque text',
      (answer, lines) => {
        forwardedOnce(answer)
        expect(received('x-foo')).toEqual(lines.map(line => line.replace('X-Foo: ', '')))
      },
    ],
    ['upstream STILL receives', forwardedOnce],
    [
      'upstream receives Host',
      answer => {
        forwardedOnce(answer)
        expect(received('host')).toEqual([new URL(at.upstream.url).host])
      },
    ],
    [
      'framing intact',
      answer => {
        forwardedOnce(answer)
        expect(at.upstream.seen.map(seen => seen.body.toString())).toEqual(['five!'])
      },
    ],
    [
      'trailer fields never',
      answer => {
        forwardedOnce(answer)
        expect(at.upstream.seen.map(seen => seen.body.toString())).toEqual(['AAAAA'])
        expect([...received('trailer'), ...received('te')]).toEqual([])
      },
    ],
    ['no crash', forwardedOnce],
    ['401', answer => expectOneOf(answer, 'token_invalid', 'credentials_ambiguous')],
    ['400', refusedWith('credentials_ambiguous')],
    [
      'ignored by gateway',
      (answer, lines) => {
        forwardedOnce(answer)
        const sent = lines.map(line => line.replace(/^[^:]+: /, ''))
        const told = at.upstream.seen.flatMap(seen => seen.fields.map(([, text]) => text))
        // `127.0.0.1` may appear, because it is also the real address of the client.
        expect(told.filter(text => sent.includes(text))).toEqual(sent.filter(text => text === '127.0.0.1'))
        expect(received('x-forwarded-for')).toEqual(['127.0.0.1'])
        expect(received('x-forwarded-host')).toEqual(['gw.test'])
        expect(received('x-forwarded-proto')).toEqual(['http'])
      },
    ],
    [
      'no change of upstream',
      answer => {
        forwardedOnce(answer)
        expect(received('host')).toEqual([new URL(at.upstream.url).host])
      },
    ],
  ]

  function expectOneOf(answer: RawAnswer, ...codes: string[]): void {
    expect(codes).toContain(expectRefusal(answer))
    expect(at.upstream.seen).toEqual([])
  }

  it('if a request has more headers than Node keeps by default, its body still arrives, and a second credential is still detected', async () => {
    const padding = Array.from({ length: 1_500 }, () => 'a:')
    const answer = await ask(
      at.gateway.url,
      requestBytes('POST', '/public/x', [...padding, 'Content-Length: 5'], 'five!'),
    )
    expect([answer?.status, at.upstream.seen[0]?.body.toString()]).toEqual([200, 'five!'])
    const ambiguous = await ask(
      at.gateway.url,
      requestBytes('GET', `${guarded}/x`, [
        `Authorization: Bearer ${at.user.access}`,
        ...padding,
        'Authorization: Bearer x',
      ]),
    )
    expectRefusal(ambiguous, 'credentials_ambiguous')
  })

  it('if a request has more headers than an upstream keeps, its identity headers still arrive', async () => {
    const padding = Array.from({ length: 1_500 }, () => 'a:')
    const answer = await ask(
      at.gateway.url,
      requestBytes('GET', `${guarded}/x`, [`Authorization: Bearer ${at.user.access}`, ...padding]),
    )
    expect([answer?.status, answer?.body.toString()]).toEqual([200, `secret for ${at.user.id}`])
  })
})

/** A chunked body whose trailers forge an identity. */
const trailed = Buffer.concat([
  chunked('AAAAA').subarray(0, -2),
  Buffer.from('X-User-Id: 999999\r\nX_User_Plan: pro\r\nX-Foo: bar\r\n\r\n'),
])

it('the corpus has all 59 attacks with headers', () => {
  expect(corpus.headers).toHaveLength(59)
})
