// Sends the bodies of the corpus with real tokens and checks the responses against the corpus.
import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { call, newUser } from '../support/client.ts'
import { password } from './body-cases.ts'
import type { BodyAttack, Expectation } from './corpus.ts'
import { declared, type Framed, framedRequest, generated } from './generated-bodies.ts'
import { type RawAnswer, RawConnection, value } from './raw-client.ts'
import type { Stage } from './stage.ts'

export class BodySuite {
  readonly #at: Stage
  /** A refresh token for the cases in which the store has stopped. The session of this token was opened before that. */
  #spare = ''

  constructor(at: Stage) {
    this.#at = at
  }

  async prepare(): Promise<void> {
    for (const email of [
      'u@example.com',
      'inactive@example.com',
      'inactive2@example.com',
      'case1@example.com',
    ]) {
      expect((await this.#post('register', { email, password })).status).toBe(201)
    }
    await this.#at.gateway.sql("update users set is_active = 0 where email like 'inactive%'")
    this.#spare = (await newUser(this.#at.gateway)).refresh
  }

  async run(attack: BodyAttack, { storeIsGone = false } = {}): Promise<void> {
    if (attack.body?.startsWith('@parallel') === true) return this.#inParallel(attack)
    const answer = await this.send(attack, { storeIsGone })
    // The corpus expects a 500 in only one case: a registration with the email of an inactive user.
    const isExpectedFault = attack.expect.status === 500
    await this.#at.holds([answer], { mayFail: isExpectedFault, method: attack.method })
    expect(this.#at.upstream.seen).toEqual([])
    judge(attack.expect, answer, attack.method)
    if (answer.status === 405) expect(value(answer, 'allow')).toBe('POST')
    if (answer.status < 400) expect(value(answer, 'cache-control')).toBe('no-store')
  }

  async send(attack: BodyAttack, { storeIsGone = false } = {}): Promise<RawAnswer> {
    const tokens = storeIsGone ? { VALID_REFRESH: this.#spare } : await this.#tokensFor(attack)
    const fill = (text: string) =>
      text.replace(
        /\$([A-Z][A-Z0-9_]+)/g,
        (whole, name: string) => tokens[name as keyof typeof tokens] ?? whole,
      )
    const lines = Object.entries(attack.headers)
      .filter(([name]) => name !== 'content-length')
      .map(([name, text]) => `${name.replace(/#\d+$/, '')}: ${fill(text)}`)
    if (attack.content_type !== '') lines.unshift(`Content-Type: ${attack.content_type}`)
    const framed = framedOf(attack, fill)
    const connection = new RawConnection(this.#at.gateway.url)
    try {
      await connection.writeAll(framedRequest(attack.method, attack.endpoint, lines, framed))
      const answer = await connection.answer(attack.method, 10_000)
      if (answer === undefined) throw new Error('no response')
      return answer
    } finally {
      connection.close()
    }
  }

  async #inParallel(attack: BodyAttack): Promise<void> {
    const count = Number(/\d+/.exec(attack.body ?? '')?.[0])
    const email = `parallel${count}@example.com`
    const answers = await Promise.all(
      Array.from({ length: count }, () => this.#post('register', { email, password })),
    )
    const statuses = answers.map(answer => answer.status).sort()
    expect(statuses).toEqual([201, ...Array(count - 1).fill(409)])
  }

  /** If a case uses tokens, creates new tokens for this case, because most tokens can be used only once. */
  async #tokensFor(attack: BodyAttack): Promise<Record<string, string>> {
    const text = JSON.stringify([attack.body, attack.headers])
    const wanted = new Set([...text.matchAll(/\$([A-Z][A-Z0-9_]+)/g)].map(([, name]) => name as string))
    if (wanted.size === 0) return {}
    const user = await newUser(this.#at.gateway)
    const { sql } = this.#at.gateway
    const hash = createHash('sha256').update(user.refresh).digest('hex')
    if (wanted.has('UNSTORED_REFRESH')) await sql('delete from refresh_tokens where token_hash = $1', [hash])
    if (wanted.has('REVOKED_REFRESH'))
      await sql('update refresh_tokens set revoked = 1 where token_hash = $1', [hash])
    if (wanted.has('EXPIRED_RECORD')) {
      await sql('update refresh_tokens set expires_at = $2 where token_hash = $1', [
        hash,
        new Date(0).toISOString(),
      ])
    }
    if (wanted.has('INACTIVE_USER_REFRESH'))
      await sql('update users set is_active = 0 where id = $1', [user.id])
    const [header = '', claims = '', signature = ''] = user.refresh.split('.')
    const reheaded = (changes: object) => part({ ...parsed(header), ...changes })
    return {
      ACCESS_TOKEN: user.access,
      VALID_REFRESH: user.refresh,
      UNSTORED_REFRESH: user.refresh,
      REVOKED_REFRESH: user.refresh,
      EXPIRED_RECORD: user.refresh,
      INACTIVE_USER_REFRESH: user.refresh,
      NONE_ALG_REFRESH: `${reheaded({ alg: 'none' })}.${claims}.`,
      HS256_WITH_PUBLIC_KEY: `${reheaded({ alg: 'HS256' })}.${claims}.${signature}`,
      OTHER_TYP: `${reheaded({ typ: 'JWT' })}.${claims}.${signature}`,
      TAMPERED_SUB: `${header}.${part({ ...parsed(claims), sub: '1' })}.${signature}`,
    }
  }

  #post(endpoint: string, sent: object) {
    return call(this.#at.gateway.url, 'POST', `/api/v1/auth/${endpoint}`, { body: sent })
  }
}

const parsed = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString()) as object
const part = (object: object) => Buffer.from(JSON.stringify(object)).toString('base64url')

function framedOf(attack: BodyAttack, fill: (text: string) => string): Framed {
  if (attack.body_base64 !== undefined) return declared(Buffer.from(attack.body_base64, 'base64'))
  const text = attack.body ?? ''
  return (text.startsWith('@') ? generated(text) : undefined) ?? declared(Buffer.from(fill(text)))
}

function judge(expected: Expectation, answer: RawAnswer, method: string): void {
  if (expected.any_of !== undefined) {
    const failures = expected.any_of.filter(option => !fits(option, answer, method))
    expect(failures, answer.body.toString()).not.toHaveLength(expected.any_of.length)
    return
  }
  expect([expected, answer.status, answer.body.toString()]).toSatisfy(() => fits(expected, answer, method))
}

function fits({ status, body, keys, token_type }: Expectation, answer: RawAnswer, method: string): boolean {
  if (status !== undefined && ![status].flat().includes(answer.status)) return false
  if (method === 'HEAD') return answer.body.length === 0
  const said = JSON.parse(answer.body.toString()) as Record<string, unknown>
  if (body !== undefined && JSON.stringify(said) !== JSON.stringify(body)) return false
  if (keys !== undefined && keys.join() !== Object.keys(said).join()) return false
  return token_type === undefined || said.token_type === token_type
}
