// Tests how the quota guard refuses a request whose user was deleted after the authentication.
import { expect, it } from 'vitest'
import { createPlans } from '../../../src/config/plans.ts'
import type { TargetAvailable } from '../../../src/gate/guards/available-target.ts'
import { createCountQuota } from '../../../src/gate/guards/count-quota.ts'
import { Refusal } from '../../../src/refusals/refusal.ts'
import type { Reservation } from '../../../src/upstream/reservation.ts'
import type { Endpoint } from '../../../src/upstream/targets/endpoint.ts'
import { fieldOf, guardedRequest, told, userIdentity } from './a-guarded-request.ts'

const allowance = { text: '5/day', limit: 5, period: 'day' } as const
const plans = createPlans([{ name: 'free', quotas: { exports: allowance }, api_keys: 0, webhook: false }])

it.each([
  ['an access token', { authorization: 'Bearer a.b.c' }, 'Bearer error="invalid_token"'],
  ['an API key', { 'x-api-key': 'peage_1' }, 'Bearer'],
])('if the user of %s was deleted, the 401 has WWW-Authenticate', async (_, headers, challenge) => {
  const guard = createCountQuota({
    plans,
    counter: { use: async () => undefined },
    exhausted: { get: () => undefined, beginRead: () => () => {}, forget: () => {} },
    now: () => 0,
  })({ name: 'exports', cost: 1 })
  const endpoint = { pool: { cancel: () => {} } } as unknown as Endpoint
  const reserveConnection = (): Reservation => ({ endpoint, client: 0, connection: undefined })
  const request = { ...guardedRequest(headers), reserveConnection }
  const thrown = await guard(request, userIdentity() as TargetAvailable)
  if (!(thrown instanceof Refusal)) throw new Error('the request was admitted')
  const decision = { allowed: false, thrown } as const
  expect(told(decision)).toBe('401 user_not_found')
  expect(fieldOf(decision, 'www-authenticate')).toBe(challenge)
})
