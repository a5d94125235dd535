// Tests the endpoints for pro users: their responses, and the changes that they store.

import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createEndpointTable } from '../../src/endpoints/endpoint-table.ts'
import type { EndpointResponse } from '../../src/endpoints/local-endpoint.ts'
import { createUserEndpoints } from '../../src/endpoints/user.ts'
import { JsonObject } from '../../src/http/json-body.ts'
import { messages } from '../../src/refusals/catalog.ts'
import { Refusal } from '../../src/refusals/refusal.ts'
import type { Database } from '../../src/storage/database.ts'
import { createRateLimiter } from '../../src/storage/rate-limiter.ts'
import type { User } from '../../src/users/user.ts'
import { createUserStore } from '../../src/users/user-store.ts'
import type { Webhooks } from '../../src/webhooks/webhooks.ts'
import { type ApiKeyStores, openApiKeys } from '../support/api-keys.ts'
import { lendDatabase } from '../support/lent-database.ts'
import { builtInPlans } from '../support/plans.ts'
import { bytesOf, refusalOf } from '../support/refusals.ts'
import { asked } from './asked.ts'

const at = Date.parse('2026-02-03T04:05:06.789Z')

let database: Database
let apiKeys: ApiKeyStores
let user: User
let made = 0

beforeAll(async () => {
  database = await lendDatabase()
  apiKeys = openApiKeys(database)
})
beforeEach(async () => {
  made += 1
  const users = createUserStore(database)
  const created = await users.create(`endpoint${made}@example.com`, 'a hash')
  if (created.outcome !== 'created') throw new Error('not created')
  user = (await users.update(created.id, { plan: 'pro' })) as User
})
afterAll(() => database.close())

/** Returns a stub of `Webhooks` that records each call and accepts every string as a URL. */
function noting(): Webhooks & { calls: unknown[][] } {
  const calls: unknown[][] = []
  return {
    calls,
    async register(...args) {
      calls.push(['register', ...args])
      if (typeof args[1] !== 'string') throw new Refusal('webhook_url_invalid')
      return { url: args[1], secret: 'whsec_c2VjcmV0', created_at: new Date(at) }
    },
    async remove(...args) {
      calls.push(['remove', ...args])
    },
  }
}

/**
 * A stub of the function that waits until all caches contain a change. The stub never waits, because these tests have
 * no cache.
 */
const changesVisible = async () => {}

function endpoints(webhooks: Webhooks = noting()) {
  return createUserEndpoints({
    plans: builtInPlans,
    apiTokens: { replace: apiKeys.replace, revoke: apiKeys.revokeApiToken },
    limiter: createRateLimiter('keys', null, { clock: { now: () => at } }),
    webhooks,
    randomBytes,
    clock: { now: () => at },
    requireLiveCredential: async () => {},
    changesVisible,
  })
}

function ask(
  method: string,
  path: string,
  body: object = {},
  webhooks?: Webhooks,
): Promise<EndpointResponse> {
  const found = endpoints(webhooks).find(({ operation: one }) => one.method === method && one.path === path)
  if (found === undefined) throw new Error(`no ${method} ${path}`)
  return found.handle({ ...asked, user, body: new JsonObject(body) })
}

const apiToken = '/api/v1/user/api-token'
const webhook = '/api/v1/user/webhook'

it('only users with the plan `pro` may use the endpoints for API keys and webhooks', () => {
  expect(endpoints().map(({ accepts }) => accepts)).toEqual(
    Array(4).fill({ keys: 'api_token', plans: ['pro'] }),
  )
  const table = createEndpointTable(endpoints(), [], [])
  for (const path of [apiToken, webhook]) {
    const found = table(path.slice(1).split('/'))
    if (found === undefined || found === 'unknown') throw new Error(`${path} has no endpoint`)
    expect(found).toMatchObject({ path, isReplaceable: false, switchedOff: [] })
    expect([...found.endpoints].map(([method, { operation }]) => [method, operation.path])).toEqual([
      ['POST', path],
      ['DELETE', path],
    ])
  }
})

describe('POST api-token', () => {
  it('responds with 201 and a new API key, and stores only its hash', async () => {
    const { status, body } = await ask('POST', apiToken)
    expect(status).toBe(201)
    expect(body).toEqual({
      api_token: expect.stringMatching(/^peage_[0-9A-Za-z]{36}$/),
      created_at: '2026-02-03T04:05:06.789Z',
    })
    const key = (body as { api_token: string }).api_token
    const hash = createHash('sha256').update(key).digest('hex')
    expect((await apiKeys.findActive(hash))?.userId).toBe(user.id)
    expect(JSON.stringify(await database.query('select * from api_tokens'))).not.toContain(key)
  })

  it('revokes the previous API key', async () => {
    const keyOf = (reply: EndpointResponse) => (reply.body as { api_token: string }).api_token
    const [first, second] = [keyOf(await ask('POST', apiToken)), keyOf(await ask('POST', apiToken))]
    const owner = (key: string) => apiKeys.findActive(createHash('sha256').update(key).digest('hex'))
    expect(second).not.toBe(first)
    expect(await owner(first)).toBeUndefined()
    expect((await owner(second))?.userId).toBe(user.id)
  })

  it('responds with 401 user_not_found if the user was deactivated after the guards had run', async () => {
    await createUserStore(database).update(user.id, { is_active: 0 })
    await expect(ask('POST', apiToken)).rejects.toMatchObject({ code: 'user_not_found', status: 401 })
    expect(await database.query('select 1 from api_tokens where user_id = $1', [user.id])).toEqual([])
  })
})

it('DELETE api-token revokes the API key, and responds with 200 even if there is no key', async () => {
  await ask('POST', apiToken)
  for (let i = 0; i < 2; i += 1) {
    expect(await ask('DELETE', apiToken)).toEqual({
      status: 200,
      body: { message: messages.apiTokenRevoked },
    })
  }
  expect(await database.query('select revoked from api_tokens where user_id = $1', [user.id])).toEqual([
    { revoked: 1 },
  ])
})

describe('the webhook endpoint', () => {
  it('POST registers the URL unchanged for the user, and responds with 201', async () => {
    const webhooks = noting()
    const url = 'HTTPS://Example.com:8443/Hook?x=1'
    expect(await ask('POST', webhook, { url, secret: 'mine' }, webhooks)).toEqual({
      status: 201,
      body: { url, secret: 'whsec_c2VjcmV0', created_at: '2026-02-03T04:05:06.789Z' },
    })
    expect(webhooks.calls).toEqual([['register', user.id, url, expect.any(Function)]])
  })

  it.each([[{}], [{ url: 7 }], [{ url: null }], [{ url: ['https://a'] }]])(
    'POST with the body %j responds with 400 webhook_url_invalid',
    async body => {
      expect(await refusalOf(ask('POST', webhook, body))).toMatchObject({
        code: 'webhook_url_invalid',
        status: 400,
        body: bytesOf({ error: 'URL de webhook invalide (HTTPS requis)' }),
      })
    },
  )

  it('DELETE removes the webhook of the user and responds with 200', async () => {
    const webhooks = noting()
    expect(await ask('DELETE', webhook, {}, webhooks)).toEqual({
      status: 200,
      body: { message: messages.webhookRemoved },
    })
    expect(webhooks.calls).toEqual([['remove', user.id]])
  })
})
