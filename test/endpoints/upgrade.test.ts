// Tests the endpoints for plan upgrades: the next plan, its checkout URL, and the requests that are refused.
import { describe, expect, it } from 'vitest'
import { createEndpointTable } from '../../src/endpoints/endpoint-table.ts'
import type { EndpointResponse } from '../../src/endpoints/local-endpoint.ts'
import { createUpgradeEndpoints } from '../../src/endpoints/upgrade.ts'
import { JsonObject } from '../../src/http/json-body.ts'
import type { Plan, User } from '../../src/users/user.ts'
import { builtInPlans } from '../support/plans.ts'
import { bytesOf, refusalOf } from '../support/refusals.ts'
import { asked } from './asked.ts'

const address = 'https://pay.example.com/to/{plan}?user={user_id}&plan={plan}'

function ask(
  method: 'GET' | 'POST',
  plan: Plan,
  body: object = {},
  upgradeUrl = address,
): Promise<EndpointResponse> {
  const user: User = {
    id: 9007199254740991,
    email: 'a@b.c',
    plan,
    is_active: 1,
    daily_usage: 0,
    last_usage_date: null,
    created_at: new Date(0),
    email_verified_at: null,
  }
  const found = createUpgradeEndpoints(upgradeUrl, builtInPlans.names).find(
    ({ operation }) => operation.method === method,
  )
  return found?.handle({ ...asked, user, body: new JsonObject(body) }) as Promise<EndpointResponse>
}

const checkout = (plan: string) => `https://pay.example.com/to/${plan}?user=9007199254740991&plan=${plan}`

it('users with any plan may use the upgrade path, and its GET endpoint also serves HEAD', () => {
  const endpoints = createUpgradeEndpoints(address, builtInPlans.names)
  const [show, go] = endpoints
  expect(createEndpointTable([], endpoints, [])(['api', 'v1', 'subscription', 'upgrade'])).toEqual({
    path: '/api/v1/subscription/upgrade',
    endpoints: new Map([
      ['GET', show],
      ['HEAD', show],
      ['POST', go],
    ]),
    isReplaceable: true,
    switchedOff: [],
  })
  expect(endpoints.map(({ accepts }) => accepts)).toEqual([{ keys: 'api_token' }, { keys: 'api_token' }])
})

describe('GET /api/v1/subscription/upgrade', () => {
  const plans = ['free', 'premium', 'pro']
  it.each([
    ['free', checkout('premium')],
    ['premium', checkout('pro')],
    ['pro', null],
  ] as const)('shows a user with the plan `%s` the checkout URL %s', async (plan, url) => {
    expect(await ask('GET', plan)).toEqual({
      status: 200,
      body: { current_plan: plan, plans, checkout_url: url },
    })
  })

  it('shows no checkout URL if none is configured', async () => {
    expect((await ask('GET', 'free', {}, '')).body).toEqual({
      current_plan: 'free',
      plans,
      checkout_url: null,
    })
  })
})

describe('POST /api/v1/subscription/upgrade', () => {
  it.each([
    ['free', {}, 'premium'],
    ['premium', {}, 'pro'],
    ['free', { plan: 'premium' }, 'premium'],
    ['free', { plan: 'pro' }, 'pro'],
    ['premium', { plan: 'pro' }, 'pro'],
    ['free', { plan: '' }, 'premium'],
    ['free', { plan: null }, 'premium'],
  ] as const)(
    'redirects a user with the plan `%s` who sends the body %j to the checkout for the plan `%s`',
    async (plan, body, wanted) => {
      expect(await ask('POST', plan, body)).toEqual({ status: 303, headers: { location: checkout(wanted) } })
    },
  )

  const refused = [
    ['pro', {}],
    ['pro', { plan: 'pro' }],
    ['pro', { plan: 'premium' }],
    ['premium', { plan: 'premium' }],
    ['premium', { plan: 'free' }],
    ['free', { plan: 'free' }],
    ['free', { plan: 'gold' }],
    ['free', { plan: 'Pro' }],
    ['free', { plan: ' pro' }],
    ['free', { plan: '__proto__' }],
    ['free', { plan: 0 }],
    ['free', { plan: false }],
    ['free', { plan: ['pro'] }],
    ['free', { plan: {} }],
  ] as const
  it.each(refused)(
    'responds with 400 plan_invalid to a user with the plan `%s` who sends the body %j',
    async (plan, body) => {
      expect(await refusalOf(ask('POST', plan, body))).toMatchObject({
        code: 'plan_invalid',
        status: 400,
        body: bytesOf({ error: 'Plan invalide' }),
      })
    },
  )

  it('if no checkout URL is configured, responds with 501 to a valid plan and with 400 to an invalid plan', async () => {
    expect(await refusalOf(ask('POST', 'free', {}, ''))).toMatchObject({
      code: 'payment_not_configured',
      status: 501,
      body: bytesOf({ error: 'Paiement non configuré' }),
    })
    await expect(ask('POST', 'pro', {}, '')).rejects.toMatchObject({ code: 'plan_invalid' })
    await expect(ask('POST', 'free', { plan: 'gold' }, '')).rejects.toMatchObject({ code: 'plan_invalid' })
  })

  it('if the configured URL has no placeholders, redirects to exactly this URL', async () => {
    const { headers } = await ask('POST', 'free', {}, 'https://pay.example.com')
    expect(headers).toEqual({ location: 'https://pay.example.com' })
  })
})
