// Attacks with request bodies that are not a JSON object, contain invalid strings or never end (corpus `bodies`).
import { describe, expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { describeOverSetups } from '../support/setups.ts'
import { attacks, body, password } from './body-cases.ts'
import { BodySuite } from './body-suite.ts'
import { type BodyAttack, corpus } from './corpus.ts'
import { expectRefusal } from './invariants.ts'
import { value } from './raw-client.ts'
import { throughRelay } from './relay.ts'
import { stage } from './stage.ts'

/** Returns whether an attack needs a stopped store. These attacks run last. */
const isStoreStopped = ({ precondition }: BodyAttack) => precondition === 'Postgres stopped'

describeOverSetups('hostile bodies', setup => {
  const relayed = throughRelay(setup)
  const at = stage(relayed.setup)
  const suite = new BodySuite(at)

  it('use the accounts of the corpus; this test registers these accounts', () => suite.prepare())

  describe.each(groups(attacks.filter(attack => !isStoreStopped(attack))))('%s', (_, attacks) => {
    it.each(attacks)('$id: $desc', attack => suite.run(attack))
  })

  it('cannot register a user who is inactive, has another plan than `free`, or has a chosen ID', async () => {
    const rows = await at.gateway.sql<{ id: number; plan: string; is_active: number; daily_usage: number }>(
      "select id, plan, is_active, daily_usage from users where email like 'm%@example.com' or email like 'ct%'",
    )
    expect(rows.length).toBeGreaterThan(15)
    for (const row of rows) expect(row).toMatchObject({ plan: 'free', is_active: 1, daily_usage: 0 })
    expect(await at.gateway.sql('select * from subscriptions where plan <> $1', ['free'])).toEqual([])
    expect(rows.map(row => row.id)).not.toContain(1)
  })

  it('change no property of Object.prototype', () => {
    const empty = {} as Record<string, unknown>
    expect([empty.plan, empty.isAdmin, empty.email, empty.password, empty.refresh_token]).toEqual(
      Array(5).fill(undefined),
    )
  })

  it.each([
    ['a NUL at its end', 'p46@example.com', '12345678\u0000', '12345678'],
    ['a line feed at its end', 'p48@example.com', '12345678\n', '12345678'],
    ['a 73rd byte', 'p44@example.com', 'a'.repeat(73), 'a'.repeat(74)],
    ['eight spaces', 'p38@example.com', ' '.repeat(8), ' '.repeat(9)],
  ])(
    'log a user in only with the exact password, even if the password contains %s',
    async (_, email, right, nearly) => {
      const login = (given: string) =>
        call(at.gateway.url, 'POST', '/api/v1/auth/login', { body: { email, password: given } })
      expect((await login(nearly)).status).toBe(401)
      expect((await login(right)).status).toBe(200)
    },
  )

  describe('without the store', () => {
    it('the next tests have no store, because this test stops it', () =>
      relayed.relay === undefined ? at.gateway.backing.database.close() : relayed.relay.stop())

    it.each(attacks.filter(isStoreStopped))('$id: $desc', attack => suite.run(attack, { storeIsGone: true }))

    it.each([
      ['register', { email: 'late@example.com', password }, 500, 'internal'],
      ['login', { email: 'u@example.com', password }, 503, 'service_unavailable'],
      ['refresh', { refresh_token: '$VALID_REFRESH' }, 503, 'service_unavailable'],
      ['register', { email: 'no-at' }, 400, 'email_invalid'],
      ['login', {}, 400, 'credentials_missing'],
      ['refresh', { refresh_token: 'x' }, 401, 'refresh_token_invalid'],
    ] as const)('%s %j gets a %i within 2 s', async (endpoint, sent, status, code) => {
      const start = performance.now()
      const answer = await suite.send(body(endpoint, sent, {}), { storeIsGone: true })
      expect(performance.now() - start).toBeLessThan(2_000)
      expect([answer.status, expectRefusal(answer, code)]).toEqual([status, code])
      if (status === 503) expect(value(answer, 'retry-after')).toBe('1')
    })
  })
})

it('the corpus has all 166 bodies', () => {
  expect(corpus.bodies).toHaveLength(166)
})

/** Groups the attacks by endpoint, so that the test report is readable. */
function groups(attacks: BodyAttack[]): [string, BodyAttack[]][] {
  const endpoints = new Set(attacks.map(attack => attack.endpoint))
  return [...endpoints].map(endpoint => [endpoint, attacks.filter(attack => attack.endpoint === endpoint)])
}
