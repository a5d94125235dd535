// Checks the requests that create API keys: wrong input, the order of the checks, limits, and concurrent calls.
import { expect, it } from 'vitest'
import { type Answer, call, newUser, type TestUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeWithServices } from '../support/services.ts'
import { describeOverSetups, services } from '../support/setups.ts'

const names = Array.from({ length: 51 }, (_, i) => `s${i}`)
const yaml = (upstream: string) => `plans:
  - { name: free }
  - { name: one, api_keys: 1 }
  - { name: many, api_keys: 5 }
upstreams: { echo: { targets: ['${upstream}'] } }
routes:
  - { path: /any, upstream: echo }
${names.map(name => `  - { path: /${name}, upstream: echo, scope: ${name} }`).join('\n')}
`
const rateLimits = (keys: string) =>
  `rate_limits: { register: 0, login_failures: 0, login_failures_per_address: 0, refresh: 0, bad_keys: 0, keys: ${keys} }`

const badName = [400, 'key_name_invalid', 'Nom de clé invalide'] as const
const badScope = [400, 'scope_invalid', 'Portée invalide'] as const
const badDays = [400, 'expiry_invalid', 'Durée de validité invalide'] as const
const full = (limit: number) =>
  [409, 'key_limit_reached', { error: 'Nombre maximal de clés atteint', limit }] as const

const create = (base: string, { access: token }: TestUser, body: unknown = { name: 'CI' }) =>
  call(base, 'POST', '/api/v1/auth/keys', { token, body })
/** Returns how many responses have the status 201 and how many have the status 409. */
const countsOf = (answers: readonly Answer[]) =>
  [201, 409].map(wanted => answers.filter(({ status }) => status === wanted).length)

describeOverSetups('the creation of an API key', setup => {
  const at = journey(setup, { rateLimits: rateLimits("'3/1h'") }, yaml)
  const post = (user: TestUser, body?: unknown) => create(at.gateway.url, user, body)
  const keysOf = ({ id }: TestUser) =>
    at.gateway.sql<{ name: string }>('select name from api_keys where user_id = $1 order by created_at', [id])

  it.each([
    ['missing', undefined],
    ['null', null],
    ['a number', 7],
    ['a list', ['CI']],
    ['empty', ''],
    ['only spaces', ' \t\n\u00a0\u3000 '],
    ['over 64 code points', 'x'.repeat(65)],
    ['over 64 astral code points', '😀'.repeat(65)],
    ['with a line feed inside', 'a\nb'],
    ['with a NUL', 'a\u0000b'],
    ['with a DEL', 'a\u007fb'],
    ['with a C1 control character', 'a\u0085b'],
    ['with an unpaired high surrogate', 'a\ud800b'],
    ['with an unpaired low surrogate', '\udc00'],
  ])('refuses a name that is %s', async (_, name) => {
    const user = await newUser(at.gateway, 'many')
    expectRefusal(await post(user, { name }), ...badName)
    expect(await keysOf(user)).toEqual([])
  })

  it.each([
    [` ${'😀'.repeat(64)}\t`, '😀'.repeat(64)],
    ['\n Clé « n° 1 » <b>&"\' \u00a0', 'Clé « n° 1 » <b>&"\''],
    ['__proto__', '__proto__'],
  ])('trims the name and stores it: %j', async (name, stored) => {
    const user = await newUser(at.gateway, 'many')
    const answer = await post(user, { name })
    expect([answer.status, answer.body.name, answer.body.scopes]).toEqual([201, stored, null])
    expect(await keysOf(user)).toEqual([{ name: stored }])
  })

  it.each([
    ['null', null],
    ['a string', 's0'],
    ['an object', { 0: 's0', length: 1 }],
    ['an empty list', []],
    ['a list with a scope twice', ['s0', 's1', 's0']],
    ['a list with an unknown scope', ['s0', 'unknown']],
    ['a list with another letter case', ['S0']],
    ['a list with a space', ['s0 ']],
    ['a list of numbers', [0]],
    ['a list with a list', [['s0']]],
    ['a list with null', ['s0', null]],
    ['a list of 51 scopes', names],
  ])('refuses scopes that are %s', async (_, scopes) => {
    expectRefusal(await post(await newUser(at.gateway, 'many'), { name: 'CI', scopes }), ...badScope)
  })

  it('accepts 50 scopes and keeps their order', async () => {
    const scopes = names.slice(0, 50).toReversed()
    const { status, body } = await post(await newUser(at.gateway, 'many'), { name: 'CI', scopes })
    expect([status, body.scopes]).toEqual([201, scopes])
  })

  it.each([0, -1, 367, 1.5, 1e300, '1', '', true, [1], {}])(
    'refuses %j as the number of days',
    async days => {
      const user = await newUser(at.gateway, 'many')
      expectRefusal(await post(user, { name: 'CI', expires_in_days: days }), ...badDays)
    },
  )

  it.each([
    ['1', 1],
    ['1.0', 1],
    ['366', 366],
    ['null', null],
  ])('accepts %s as the number of days', async (text, days) => {
    const user = await newUser(at.gateway, 'many')
    const { status, body } = await post(user, `{"name":"CI","expires_in_days":${text}}`)
    const expiresAt = days === null ? null : new Date(at.gateway.clock.at + days * 86_400_000).toISOString()
    expect([status, body.expires_at]).toEqual([201, expiresAt])
  })

  it('treats a body that is not a JSON object like an empty object', async () => {
    const user = await newUser(at.gateway, 'many')
    for (const body of ['', 'no JSON', '[]', 'null', '"CI"'])
      expectRefusal(await post(user, body), ...badName)
  })

  it('checks the plan, the name, the scopes, the days, the limit and the rate limit in this order', async () => {
    const user = await newUser(at.gateway)
    const wrong = { name: '', scopes: [], expires_in_days: 0 }
    const answer = await post(user, wrong)
    expect([answer.status, answer.headers.get('x-peage-error')]).toEqual([403, 'plan_insufficient'])
    expect(answer.body).toMatchObject({ required: ['one', 'many'] })
    const rich = await newUser(at.gateway, 'one')
    expect((await post(rich)).status).toBe(201)
    expectRefusal(await post(rich, wrong), ...badName)
    expectRefusal(await post(rich, { ...wrong, name: 'CI' }), ...badScope)
    expectRefusal(await post(rich, { name: 'CI', expires_in_days: 0 }), ...badDays)
    for (let i = 0; i < 4; i += 1) expectRefusal(await post(rich), ...full(1))
  })

  it('shares its rate limit with the key `api-token`; requests that another check refuses do not count, but deleted keys do', async () => {
    const user = await newUser(at.gateway, 'many')
    for (const body of [{}, { name: 'CI', scopes: [] }, { name: 'CI', expires_in_days: 0 }])
      for (let i = 0; i < 3; i += 1) expect((await post(user, body)).status).toBe(400)
    const apiToken = () => call(at.gateway.url, 'POST', '/api/v1/user/api-token', { token: user.access })
    expect([(await post(user)).status, (await apiToken()).status, (await post(user)).status]).toEqual([
      201, 201, 201,
    ])
    await call(at.gateway.url, 'DELETE', '/api/v1/auth/keys', { token: user.access })
    for (const answer of [await post(user), await apiToken()]) {
      expect([answer.status, answer.headers.get('x-peage-error')]).toEqual([429, 'rate_limited'])
    }
    expect(await keysOf(user)).toHaveLength(2)
    const [live] = await at.gateway.sql('select from api_tokens where user_id = $1 and revoked = 0', [
      user.id,
    ])
    expect(live).toBeUndefined()
    expect((await post(await newUser(at.gateway, 'many'))).status).toBe(201)
  })

  it('counts only live keys towards the maximum of the plan', async () => {
    const user = await newUser(at.gateway, 'one')
    const first = await post(user, { name: 'CI', expires_in_days: 1 })
    expectRefusal(await post(user), ...full(1))
    await at.gateway.sql("update api_keys set expires_at = now() - interval '1 day' where id = $1", [
      first.body.id,
    ])
    expect((await post(user)).status).toBe(201)
    expectRefusal(await post(user), ...full(1))
    await at.gateway.sql('update api_keys set revoked_at = now() where user_id = $1', [user.id])
    expect((await post(user)).status).toBe(201)
  })
})

describeOverSetups('fifty concurrent creations of API keys', setup => {
  const at = journey(setup, { rateLimits: rateLimits("'5/1h'") }, yaml)

  it('create exactly as many keys as the plan allows; the refused requests do not count towards the rate limit', async () => {
    const user = await newUser(at.gateway, 'many')
    const answers = await Promise.all(Array.from({ length: 50 }, () => create(at.gateway.url, user)))
    expect(countsOf(answers)).toEqual([5, 45])
    const rows = await at.gateway.sql('select from api_keys where user_id = $1', [user.id])
    expect(rows).toHaveLength(5)
  })
})

describeWithServices('two replicas', () => {
  it('together create exactly as many keys as the plan allows', async () => {
    const stores = await services.open()
    const settings = { rateLimits: rateLimits("'5/1h'") }
    const replicas = await Promise.all([
      startGateway(yaml('http://127.0.0.1:1'), stores, settings),
      startGateway(yaml('http://127.0.0.1:1'), stores, settings),
    ])
    const [first] = replicas
    for (let round = 0; round < 5; round += 1) {
      const user = await newUser(first, 'many')
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => create(String(replicas[i % 2]?.url), user)),
      )
      expect(countsOf(answers)).toEqual([5, 45])
      expect(await first.sql('select from api_keys where user_id = $1', [user.id])).toHaveLength(5)
    }
    await Promise.all(replicas.map(replica => replica.stop()))
    await services.drop(stores)
  })
})
