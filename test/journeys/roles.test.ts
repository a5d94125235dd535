// The role of an admin token limits its operations, and `admin.allow_from` limits its callers.
import { describe, expect, it } from 'vitest'
import { createAdminEndpoints } from '../../src/admin/api/serve-api.ts'
import { documentation } from '../../src/admin/documentation.ts'
import { call, newUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const tokens = {
  all: 'a-token-for-operators-0123456789',
  support: 'a-token-of-the-support-team',
  read: 'a-token-of-the-auditor',
  billing: 'a-token-of-the-billing-service',
} as const
type Role = keyof typeof tokens

const admin = `, token: ${tokens.all}, tokens: { ${(['support', 'read', 'billing'] as const)
  .map(role => `${role}: { token: ${tokens[role]}, may: ${role} }`)
  .join(', ')} }`

/** Maps each operation to the roles that may use it. The role `all` may use every operation and is not listed. */
const may: Readonly<Record<string, readonly Role[]>> = {
  'GET /admin/v1/routes': ['support', 'read'],
  'GET /admin/v1/plans': ['support', 'read', 'billing'],
  'GET /admin/v1/password-hashes': ['support', 'read'],
  'GET /admin/v1/users': ['support', 'read', 'billing'],
  'GET /admin/v1/users/:id': ['support', 'read', 'billing'],
  'PATCH /admin/v1/users/:id': ['billing'],
  'POST /admin/v1/users': [],
  'DELETE /admin/v1/users/:id': [],
  'POST /admin/v1/users/:id/reset-usage': ['support'],
  'POST /admin/v1/users/:id/password': [],
  'DELETE /admin/v1/users/:id/sessions/:session': ['support'],
  'DELETE /admin/v1/users/:id/api-token': ['support'],
  'DELETE /admin/v1/users/:id/keys/:key': ['support'],
  'DELETE /admin/v1/users/:id/keys': ['support'],
  'DELETE /admin/v1/users/:id/identities/:provider': ['support'],
  'DELETE /admin/v1/users/:id/webhook': ['support'],
  'GET /admin/v1/users/:id/sessions': ['support', 'read'],
  'DELETE /admin/v1/users/:id/sessions': ['support'],
  'POST /admin/v1/alerts': [],
  'GET /admin/v1/deliveries': ['support', 'read'],
  'POST /admin/v1/deliveries/:id/retry': ['support'],
  'GET /admin/v1/audit': ['support', 'read'],
  'GET /admin/v1/mails': ['support', 'read'],
  'GET /admin/v1/configuration': ['support', 'read'],
  'GET /admin/v1/overview': ['support', 'read'],
  'POST /admin/v1/users/:id/send-reset': ['support'],
  'GET /admin/v1/users/:id/export': ['support'],
  'POST /admin/v1/explain': ['support', 'read'],
  'GET /openapi.json': ['support', 'read'],
}

const forbidden = 'Droits insuffisants'

describeOverSetups('roles of operators', setup => {
  const at = journey(setup, { admin })
  const ask = (role: Role, method: string, path: string, body?: unknown) =>
    call(at.gateway.admin, method, path, { body, token: tokens[role] })

  it('are tested for every endpoint', () => {
    const operations = [
      ...createAdminEndpoints({} as never).map(({ operation }) => operation),
      ...Object.values(documentation),
    ]
    expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(may).sort())
  })

  // These requests have an unknown user ID and an invalid body. If the role is wrong, the gateway must refuse a request
  // before it checks the ID or the body.
  it.each(Object.entries(may))(
    '%s requires the role "all" or one of %j, and checks the role first',
    async (name, roles) => {
      const [method = '', pattern = ''] = name.split(' ')
      const path = pattern.replace(':id', '999999999').replace(/:(session|key|provider)/, 'x')
      const body = method === 'GET' || method === 'DELETE' ? undefined : 'no object'
      const stranger = await call(at.gateway.admin, method, path, { body, token: 'not-a-token-of-anybody' })
      expectRefusal(stranger, 401, 'admin_unauthorized', 'Non autorisé')
      for (const role of Object.keys(tokens) as Role[]) {
        const answer = await ask(role, method, path, body)
        if (role === 'all' || roles.includes(role)) {
          expect([role, [200, 400, 404, 501].includes(answer.status)]).toEqual([role, true])
        } else expectRefusal(answer, 403, 'admin_forbidden', forbidden)
      }
    },
  )

  it('"billing" may change only the plan of a user; a request with any other field is refused, even for an unknown user', async () => {
    const user = await newUser(at.gateway)
    const changed = await ask('billing', 'PATCH', `/admin/v1/users/${user.id}`, { plan: 'pro' })
    expect([changed.status, changed.body.plan]).toEqual([200, 'pro'])
    for (const body of [
      { is_active: 0 },
      { plan: 'free', email_verified: true },
      { plan: 'free', no_such_field: 1 },
      { plan: 7, is_active: 'x' },
    ]) {
      for (const id of [user.id, 999_999_999]) {
        const answer = await ask('billing', 'PATCH', `/admin/v1/users/${id}`, body)
        expectRefusal(answer, 403, 'admin_forbidden', forbidden)
      }
    }
    expect((await ask('all', 'GET', `/admin/v1/users/${user.id}`)).body).toMatchObject({
      plan: 'pro',
      is_active: 1,
    })
  })
})

describe('admin.allow_from', () => {
  const bearer = { authorization: `Bearer ${tokens.all}` }
  const ask = async (base: string, path: string, headers: Record<string, string> = bearer) => {
    const { status, headers: answered } = await call(base, 'GET', path, { headers })
    return [status, answered.get('x-peage-error')]
  }
  const no = [403, 'admin_forbidden']

  it('refuses addresses that it does not contain, before any other check, except at /healthz, /readyz and /metrics', async () => {
    const gateway = await startGateway('', undefined, {
      admin: `, token: ${tokens.all}, allow_from: [10.0.0.0/8, "::1"]`,
    })
    try {
      const paths = ['/admin/v1/users', '/admin/v1/nothing', '/nothing', '/openapi.json', '/console', '/%zz']
      for (const path of paths) {
        expect([path, await ask(gateway.admin, path)]).toEqual([path, no])
        expect([path, await ask(gateway.admin, path, {})]).toEqual([path, no])
      }
      for (const path of ['/healthz', '/readyz', '/metrics'])
        expect([path, await ask(gateway.admin, path, {})]).toEqual([path, [200, null]])
    } finally {
      await gateway.stop()
    }
  })

  it('requires that both the proxy and the client are allowed; earlier hops do not matter', async () => {
    const gateway = await startGateway('', undefined, {
      server: ', trusted_proxies: [127.0.0.1]',
      admin: `, token: ${tokens.all}, allow_from: [127.0.0.1, 203.0.113.0/24]`,
    })
    const from = (client: string) =>
      ask(gateway.admin, '/admin/v1/users', { ...bearer, 'x-forwarded-for': client })
    try {
      expect(await ask(gateway.admin, '/admin/v1/users')).toEqual([200, null])
      expect(await from('203.0.113.9')).toEqual([200, null])
      expect(await from('198.51.100.1')).toEqual(no)
      expect(await from('203.0.113.9, 198.51.100.1')).toEqual(no)
      expect(await from('198.51.100.1, 203.0.113.9')).toEqual([200, null])
      for (const nobody of ['unknown', '203.0.113.9, unknown', '_hidden'])
        expect([nobody, await from(nobody)]).toEqual([nobody, no])
    } finally {
      await gateway.stop()
    }
  })
})
