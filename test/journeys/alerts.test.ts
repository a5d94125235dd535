// Operators emit alerts, list deliveries and retry them on the admin listener.
import { beforeAll, describe, expect, it } from 'vitest'
import { call, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

interface Delivery {
  id: number
  user_id: number
  status: string
  webhook_id: string
}

// Names under .invalid never resolve (RFC 6761, section 6.4), so deliveries stay pending.
const url = 'https://nobody.invalid/hook'

describeOverSetups('the admin listener', setup => {
  const at = journey(setup)
  const ask = (method: string, path: string, body?: unknown, token = at.gateway.adminToken) =>
    call(at.gateway.admin, method, path, { body, token })
  const emit = (body: unknown) => ask('POST', '/admin/v1/alerts', body)
  const list = (query = '') => ask('GET', `/admin/v1/deliveries${query}`)
  const deliveries = async (query = '') => (await list(query)).body.deliveries as Delivery[]

  let user: TestUser
  async function receiving(): Promise<TestUser> {
    const made = await newUser(at.gateway, 'pro')
    await call(at.gateway.url, 'POST', '/api/v1/user/webhook', { token: made.access, body: { url } })
    return made
  }
  beforeAll(async () => {
    user = await receiving()
  })

  describe('if it receives a valid alert', () => {
    it('stores the alert for one user and returns 202', async () => {
      const answer = await emit({ type: 'course.done', data: { n: 1 }, user_id: user.id })
      expectAnswer(answer, 202, { deliveries: 1 })
      const [row] = await at.gateway.sql<{ type: string; body: string }>(
        `select a.type, a.body from webhook_deliveries d join alerts a on a.id = d.alert_id where d.user_id = $1`,
        [user.id],
      )
      const timestamp = new Date(at.gateway.clock.at).toISOString()
      expect(row?.type).toBe('course.done')
      expect(row?.body).toBe(`{"type":"course.done","timestamp":"${timestamp}","data":{"n":1}}`)
    })

    it.each([null, '', [1, 'é', null], undefined])(
      'stores the data %j, or {} if the alert has no data',
      async data => {
        expectAnswer(await emit({ type: 'any.data', data, user_id: user.id }), 202, { deliveries: 1 })
        const [row] = await at.gateway.sql<{ body: string }>(
          `select a.body from webhook_deliveries d join alerts a on a.id = d.alert_id order by d.id desc limit 1`,
        )
        expect(JSON.parse(row?.body ?? '').data).toEqual(data === undefined ? {} : data)
      },
    )
  })

  describe('if it receives an invalid alert', () => {
    it.each([9007199254740991, 0])('returns 404 for the unknown user %s', async id => {
      const answer = await emit({ type: 'x', data: {}, user_id: id })
      expectRefusal(answer, 404, 'user_not_found', 'Utilisateur introuvable')
    })

    it.each([
      {},
      { type: 7 },
      { type: 'a\u0000b' },
      { type: 'x'.repeat(256) },
      { type: '\ud800' },
      ...[null, '1', -1, 1e300].map(user_id => ({ type: 'x', user_id })),
    ])('returns 400 with the name of the invalid member, and stores nothing: %j', async body => {
      const before = await at.gateway.sql('select count(*) as n from alerts')
      const field = 'user_id' in body ? 'user_id' : 'type'
      expectRefusal(await emit({ data: {}, ...body }), 400, 'request_invalid', {
        error: 'Requête invalide',
        field,
      })
      expect(await at.gateway.sql('select count(*) as n from alerts')).toEqual(before)
    })

    it('returns 400 or 202, but no other status, if the data is nested 30,000 levels deep', async () => {
      const nested = `{"type":"x","user_id":${user.id},"data":${'['.repeat(30_000)}${']'.repeat(30_000)}}`
      expect([202, 400]).toContain((await emit(nested)).status)
    })
  })

  describe('if a delivery is retried', () => {
    const retry = (id: number | string) => ask('POST', `/admin/v1/deliveries/${id}/retry`)

    it('returns 202 and stores an audit entry if the delivery is pending', async () => {
      const one = await receiving()
      await emit({ type: 'x', data: {}, user_id: one.id })
      const [{ id } = { id: 0 }] = await deliveries(`?user_id=${one.id}`)
      expectAnswer(await retry(id), 202, { message: 'Livraison relancée' })
      const { body } = await ask('GET', `/admin/v1/audit?user_id=${one.id}`)
      expect((body.entries as object[])[0]).toMatchObject({
        route: '/admin/v1/deliveries/:id/retry',
        changes: { delivery: id },
        status: 202,
      })
    })

    it('returns 409 if the delivery has finished, and 404 if the delivery is unknown', async () => {
      const one = await receiving()
      await emit({ type: 'x', data: {}, user_id: one.id })
      const [delivery] = await deliveries(`?user_id=${one.id}`)
      await call(at.gateway.url, 'DELETE', '/api/v1/user/webhook', { token: one.access })
      expectRefusal(await retry(delivery?.id ?? 0), 409, 'delivery_over', 'Livraison terminée')
      for (const id of ['9007199254740991', '0', 'x'])
        expectRefusal(await retry(id), 404, 'delivery_unknown', 'Livraison introuvable')
      const { body } = await ask('GET', '/admin/v1/audit')
      // The audit log contains only the first refused call per route and minute. The first call was refused with 409.
      // So the later calls with 404 have no entry.
      const refused = { status: 409, user_id: null, changes: null }
      expect((body.entries as object[]).slice(0, 2)).toMatchObject([refused, { status: 202 }])
    })
  })

  describe('if deliveries are listed', () => {
    it('returns the newest delivery first, with the webhook ID that the receiver gets', async () => {
      const [first] = await deliveries(`?user_id=${user.id}`)
      expect(first).toEqual({
        id: expect.any(Number),
        user_id: user.id,
        type: 'any.data',
        status: 'pending',
        attempts: expect.any(Number),
        response_status: null,
        error: expect.toSatisfy(error => error === null || /^unresolved: /.test(String(error))),
        created_at: new Date(at.gateway.clock.at).toISOString(),
        next_attempt_at: expect.stringMatching(/^\d{4}-/),
        finished_at: null,
        webhook_id: expect.stringMatching(new RegExp(`^msg_[0-9a-f]{32}_${user.id}$`)),
      })
      const ids = (await deliveries()).map(({ id }) => id)
      expect(ids).toEqual([...ids].sort((a, b) => b - a))
    })

    it('filters the deliveries by user and by status', async () => {
      const one = await receiving()
      for (let i = 0; i < 3; i += 1) await emit({ type: 'x', data: {}, user_id: one.id })
      await call(at.gateway.url, 'DELETE', '/api/v1/user/webhook', { token: one.access })
      const dropped = await deliveries(`?user_id=${one.id}&status=dropped`)
      const found = dropped.map(({ user_id, status }) => [user_id, status])
      expect(found).toEqual(Array(3).fill([one.id, 'dropped']))
      for (const query of [`?user_id=${one.id}&status=pending`, '?user_id=9007199254740991'])
        expect(await deliveries(query)).toEqual([])
    })

    it.each([
      'status=gold',
      'status=',
      'status=pending&status=failed',
      'user_id=0',
      'user_id=1.5',
      'user_id=9007199254740993',
      'user_id=1&user_id=2',
      'cursor=x',
    ])('refuses the invalid query %s', async query => {
      expectRefusal(await list(`?${query}`), 400, 'request_invalid', 'Requête invalide')
    })
  })
})
