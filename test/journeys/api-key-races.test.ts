// Creates API keys while the user loses the right to have keys. Afterwards, there must be no key that the user had no
// right to create.
import { expect, it } from 'vitest'
import type { Queryable } from '../../src/storage/database.ts'
import { call, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { waitingForUser } from '../support/locks.ts'
import { runs } from '../support/property-runs.ts'
import { describeOverSetups } from '../support/setups.ts'

const rounds = runs(12, 6)

const yaml = () => `plans:
  - { name: free }
  - { name: pro, api_keys: 2, webhook: true }
account: { deletion: true }
`

/** Disables the rate limits, because the tests create many keys and users. */
const noLimits =
  'rate_limits: { register: 0, login_failures: 0, login_failures_per_address: 0, refresh: 0, bad_keys: 0, keys: 0 }'

describeOverSetups('the creation of an API key', setup => {
  const at = journey(setup, { rateLimits: noLimits }, yaml)
  const create = ({ access: token }: TestUser) =>
    call(at.gateway.url, 'POST', '/api/v1/auth/keys', { token, body: { name: 'CI' } })
  const revokeAll = ({ access: token }: TestUser) =>
    call(at.gateway.url, 'DELETE', '/api/v1/auth/keys', { token })
  const keysOf = async ({ id }: TestUser) =>
    (await at.gateway.sql('select from api_keys where user_id = $1', [id])).length
  const told = async (answer: ReturnType<typeof create>) => {
    const { status, headers } = await answer
    return [status, headers.get('x-peage-error')]
  }

  const changes: [string, (tx: Queryable, user: TestUser) => Promise<unknown>, number, string | null][] = [
    [
      'the plan',
      (tx, { id }) => tx.query("update users set plan = 'free' where id = $1", [id]),
      403,
      'plan_insufficient',
    ],
    [
      'the activity of the user',
      (tx, { id }) => tx.query('update users set is_active = 0 where id = $1', [id]),
      401,
      'user_not_found',
    ],
    [
      'the session',
      (tx, { id }) => tx.query('update refresh_tokens set revoked = 1 where user_id = $1', [id]),
      401,
      'token_invalid',
    ],
    [
      'the number of keys',
      (tx, { id }) =>
        tx.query(
          `insert into api_keys (user_id, token_hash, name, prefix) select $1::bigint, $1::bigint || '-' || n, 'n', 'p' from generate_series(1, 2) n`,
          [id],
        ),
      409,
      'key_limit_reached',
    ],
  ]
  it.each(changes)(
    'checks %s again after it has waited for the lock of the user’s row',
    async (_, change, status, code) => {
      const user = await newUser(at.gateway, 'pro')
      // This call stores the user and the session, as they are before the change, in the caches of the gateway.
      expect((await call(at.gateway.url, 'GET', '/api/v1/auth/keys', { token: user.access })).status).toBe(
        200,
      )
      const { answer, before } = await at.gateway.backing.database.transaction(async tx => {
        await tx.query('select from users where id = $1 for no key update', [user.id])
        const answer = told(create(user))
        await waitingForUser(setup, at.gateway.backing.database)
        await change(tx, user)
        const [row] = await tx.query<{ n: number }>(
          'select count(*)::int n from api_keys where user_id = $1',
          [user.id],
        )
        return { answer, before: row?.n }
      })
      expect(await answer).toEqual([status, code])
      expect(await keysOf(user)).toBe(before)
    },
  )

  it('is refused after a downgrade, a logout or a deactivation, and stores a key only if it returns 201', async () => {
    const operator = { headers: { authorization: `Bearer ${at.gateway.adminToken}` } }
    const patch = ({ id }: TestUser, body: object) =>
      call(at.gateway.admin, 'PATCH', `/admin/v1/users/${id}`, { ...operator, body })
    const ends: ((user: TestUser) => ReturnType<typeof call>)[] = [
      user => patch(user, { plan: 'free' }),
      user => patch(user, { is_active: 0 }),
      ({ refresh }) =>
        call(at.gateway.url, 'POST', '/api/v1/auth/logout', { body: { refresh_token: refresh } }),
    ]
    for (let round = 0; round < rounds; round += 1) {
      const user = await newUser(at.gateway, 'pro')
      const racing = [create(user), create(user)]
      const ended = await ends[round % 3]?.(user)
      expect(ended?.status).toBeLessThan(300)
      expect((await create(user)).status).toBeGreaterThanOrEqual(400)
      const created = (await Promise.all(racing)).filter(({ status }) => status === 201)
      expect(await keysOf(user)).toBe(created.length)
    }
  })

  it('leaves no key behind if the user is deleted at the same time, and never returns a 5xx status', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await newUser(at.gateway, 'pro')
      const deletion = call(at.gateway.url, 'DELETE', '/api/v1/auth/account', {
        token: user.access,
        body: { current_password: user.password },
      })
      const racing = Array.from({ length: 6 }, (_, i) => (i % 3 === 2 ? revokeAll(user) : create(user)))
      for (const { status } of await Promise.all(racing)) expect([200, 201, 401, 409]).toContain(status)
      expect((await deletion).status).toBe(200)
      expect(await keysOf(user)).toBe(0)
    }
  })

  it('creates a key that is listed, unless a concurrent revocation of all keys has revoked it', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const user = await newUser(at.gateway, 'pro')
      const [one, all, two] = await Promise.all([create(user), revokeAll(user), create(user)])
      expect([one.status, all.status, two.status]).toEqual([201, 200, 201])
      const { body } = await call(at.gateway.url, 'GET', '/api/v1/auth/keys', { token: user.access })
      expect((body.keys as object[]).length + Number(all.body.revoked)).toBe(2)
    }
  })
})
