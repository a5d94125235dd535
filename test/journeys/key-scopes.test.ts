// Tests which credentials the scope guard accepts on which routes, for HTTP requests, WebSockets and explanations.
import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { describeOverSetups } from '../support/setups.ts'
import { handshake, startWebSocketUpstream } from '../support/web-sockets.ts'

const routes = {
  plain: '',
  'scope-a': 'scope: a',
  'scope-b': 'scope: b',
  bearer: 'bearer_only: true',
  optional: 'auth: optional',
  'optional-a': 'auth: optional, scope: a',
  'optional-bearer': 'auth: optional, bearer_only: true',
  premium: 'plans: [premium]',
  'premium-a': 'plans: [premium], scope: a',
  public: 'auth: none',
} as const

type RouteName = keyof typeof routes
const names = Object.keys(routes) as RouteName[]

const yaml = (upstream: string) => `upstreams: { echo: { targets: ['${upstream}'] } }
routes:
${names.map(name => `  - { name: ${name}, path: /${name}, upstream: echo, websocket: true, ${routes[name]} }`).join('\n')}
  - { name: limited, path: /limited, upstream: echo, plans: [premium], scope: a, rate_limit: 1/1h }
`

/** The expected result of a request. For example, `scope a` is a refusal whose body has the scope `a` in `required`. */
type Result = 'ok' | 'token' | 'bearer' | 'plan' | 'scope null' | 'scope a' | 'scope b'

const refusals: Record<Exclude<Result, 'ok'>, { status: number; code: string; body: object }> = {
  token: { status: 401, code: 'token_invalid', body: { error: 'Token invalide ou expiré' } },
  bearer: { status: 403, code: 'bearer_required', body: { error: "Jeton d'accès requis" } },
  plan: {
    status: 403,
    code: 'plan_insufficient',
    body: {
      error: 'Plan insuffisant',
      required: ['premium'],
      current_plan: 'pro',
      upgrade_url: '/api/v1/subscription/upgrade',
    },
  },
  'scope null': {
    status: 403,
    code: 'scope_insufficient',
    body: { error: 'Portée insuffisante', required: null },
  },
  'scope a': {
    status: 403,
    code: 'scope_insufficient',
    body: { error: 'Portée insuffisante', required: 'a' },
  },
  'scope b': {
    status: 403,
    code: 'scope_insufficient',
    body: { error: 'Portée insuffisante', required: 'b' },
  },
}

interface Credential {
  readonly title: string
  /** The caller in a request to `explain`. Undefined if `explain` has no way to describe this credential. */
  readonly as: unknown
  headers(): Promise<Record<string, string>>
  /** The results in the order of the routes. */
  readonly results: readonly Result[]
}

const always = (result: Result, atPublic: Result = 'ok') =>
  names.map(name => (name === 'public' ? atPublic : result))
const none = 'scope null'

describeOverSetups('the scope guard', setup => {
  const at = gatewayBefore(
    startWebSocketUpstream,
    yaml,
    { rateLimits: 'rate_limits: { bad_keys: 0 }' },
    setup,
  )
  let user: TestUser
  beforeAll(async () => {
    user = await newUser(at.gateway, 'pro')
  })
  const withKey = (key: string) => ({ 'x-api-key': key })

  /** Creates a key with the endpoint of the gateway. */
  const created = (body: object) => async () => {
    const answer = await call(at.gateway.url, 'POST', '/api/v1/auth/keys', { token: user.access, body })
    expect(answer.status).toBe(201)
    return withKey(String((answer.body as { key: unknown }).key))
  }
  /** Inserts a key with SQL. */
  const inserted = (column: 'scopes' | 'expires_at' | 'revoked_at', value: () => unknown) => async () => {
    const key = `peage_${column}`
    const hash = createHash('sha256').update(key).digest('hex')
    await at.gateway.sql(
      `insert into api_keys (user_id, token_hash, name, prefix, ${column}) values ($1, $2, 'key', 'peage_', $3)`,
      [user.id, hash, value()],
    )
    return withKey(key)
  }
  const aSecondAgo = () => new Date(at.gateway.clock.now() - 1000)

  // The order of `results`: plain, scope-a, scope-b, bearer, optional, optional-a, optional-bearer, premium, premium-a,
  // public.
  const credentials: Credential[] = [
    {
      title: 'an access token',
      as: 'pro',
      headers: async () => ({ authorization: `Bearer ${user.access}` }),
      results: ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'plan', 'plan', 'ok'],
    },
    {
      title: 'no credential',
      as: 'anonymous',
      headers: async () => ({}),
      results: ['token', 'token', 'token', 'token', 'ok', 'ok', 'ok', 'token', 'token', 'ok'],
    },
    {
      title: 'the key of `/api/v1/user/api-token`',
      as: { plan: 'pro', key: true },
      async headers() {
        await giveKey(at.gateway, user, 'peage_of-the-old-kind')
        return withKey('peage_of-the-old-kind')
      },
      results: ['ok', 'ok', 'ok', 'bearer', 'ok', 'ok', 'bearer', 'plan', 'plan', 'ok'],
    },
    {
      title: 'a key without scopes',
      as: { plan: 'pro', key: true },
      headers: created({ name: 'unlimited' }),
      results: ['ok', 'ok', 'ok', 'bearer', 'ok', 'ok', 'bearer', 'plan', 'plan', 'ok'],
    },
    {
      title: 'a key with scope a',
      as: { plan: 'pro', scopes: ['a'] },
      headers: created({ name: 'a', scopes: ['a'] }),
      results: [none, 'ok', 'scope b', 'bearer', none, 'ok', 'bearer', none, 'plan', 'ok'],
    },
    {
      title: 'a key with the scopes a and b',
      as: { plan: 'pro', key: true, scopes: ['b', 'a'] },
      headers: created({ name: 'a and b', scopes: ['b', 'a'] }),
      results: [none, 'ok', 'ok', 'bearer', none, 'ok', 'bearer', none, 'plan', 'ok'],
    },
    {
      title: 'a key with a scope that no route has',
      as: { plan: 'pro', scopes: ['aa'] },
      headers: inserted('scopes', () => ['aa']),
      results: [none, 'scope a', 'scope b', 'bearer', none, 'scope a', 'bearer', none, 'scope a', 'ok'],
    },
    {
      title: 'a key with an empty list of scopes',
      as: { plan: 'pro', scopes: [] },
      async headers() {
        const headers = await created({ name: 'empty', scopes: ['a'] })()
        await at.gateway.sql("update api_keys set scopes = '{}' where name = 'empty'")
        return headers
      },
      results: [none, 'scope a', 'scope b', 'bearer', none, 'scope a', 'bearer', none, 'scope a', 'ok'],
    },
    {
      title: 'an expired key',
      as: undefined,
      headers: inserted('expires_at', aSecondAgo),
      results: always('token'),
    },
    {
      title: 'a revoked key',
      as: undefined,
      headers: inserted('revoked_at', aSecondAgo),
      results: always('token'),
    },
  ]

  describe.each(credentials)('for $title', ({ as, headers: makeHeaders, results }) => {
    let headers: Record<string, string>
    beforeAll(async () => {
      headers = await makeHeaders()
    })
    const cells = names.map((name, index) => [name, results[index] as Result] as const)

    it.each(cells)('handles a request to route %s with the result: %s', async (name, result) => {
      at.upstream.requests.length = 0
      const answer = await call(at.gateway.url, 'GET', `/${name}`, { headers })
      const code = answer.headers.get('x-peage-error')
      if (result === 'ok') expect([answer.status, code]).toEqual([200, null])
      else expect({ status: answer.status, code, body: answer.body }).toEqual(refusals[result])
      expect(at.upstream.requests).toHaveLength(result === 'ok' ? 1 : 0)
    })

    it.each(cells)('handles a WebSocket handshake to route %s with the result: %s', async (name, result) => {
      const connection = new RawConnection(at.gateway.url)
      const lines = Object.entries(headers).map(([field, value]) => `${field}: ${value}`)
      connection.write(requestBytes('GET', `/${name}`, [...handshake, ...lines]))
      const answer = await connection.answer()
      connection.close()
      if (result === 'ok') {
        expect(answer?.status).toBe(101)
        return
      }
      const { status, code, body } = refusals[result]
      const fields = new Map(answer?.fields)
      expect([answer?.status, fields.get('x-peage-error')]).toEqual([status, code])
      expect(JSON.parse(String(answer?.body))).toEqual(body)
    })

    if (as === undefined) return
    it.each(cells)('is explained for a request to route %s with the result: %s', async (name, result) => {
      const { status, body } = await call(at.gateway.admin, 'POST', '/admin/v1/explain', {
        token: at.gateway.adminToken,
        body: { method: 'GET', path: `/${name}`, as },
      })
      expect(status).toBe(200)
      const explained = body as { status: number | null; guards: { outcome: string; error?: string }[] }
      const refused = explained.guards.find(({ outcome }) => outcome === 'refuse')
      const expected = result === 'ok' ? undefined : refusals[result]
      expect([explained.status, refused?.error]).toEqual([expected?.status ?? null, expected?.code])
    })
  })

  it('runs after the rate limit and before the plan guard', async () => {
    // This test needs a new user, because the plan of the previous user allows no more keys.
    user = await newUser(at.gateway, 'pro')
    const headers = await created({ name: 'order', scopes: ['b'] })()
    const get = async () => {
      const answer = await call(at.gateway.url, 'GET', '/limited', { headers })
      return [answer.status, answer.headers.get('x-peage-error')]
    }
    // The key does not have the scope of the route, and the user does not have the plan of the route.
    expect(await get()).toEqual([403, 'scope_insufficient'])
    expect(await get()).toEqual([429, 'rate_limited'])
  })
})
