// Explains how the running gateway would handle a request, as `peage explain` does.
import type { Clock } from '../../clock.ts'
import { formats } from '../../config/formats/formats.ts'
import { FormatError } from '../../config/formats/units.ts'
import type { Plans } from '../../config/plans.ts'
import { isScope } from '../../config/sections/builders.ts'
import { JsonObject } from '../../http/json-body.ts'
import { mergeRefusals, type Operation } from '../../openapi/operation.ts'
import * as terms from '../../openapi/schema-builders.ts'
import { Type } from '../../schema/type.ts'
import { type QuotaUsage, readQuotaUsage } from '../../usage/quota-usage.ts'
import { utcDay } from '../../usage/utc-day.ts'
import type { Plan, User } from '../../users/user.ts'
import {
  type AdminDependencies,
  type AdminEndpoint,
  type ExplainQuestion,
  operatorRefusals,
} from './admin-endpoint.ts'
import { invalidField, readCount } from './input.ts'
import { orNotFound } from './user-input.ts'

const diff = terms.record({
  set: Type.Record('^.*$', Type.String(), {
    description: 'Headers that the gateway sets. Secret values are shown as `***`.',
  }),
  remove: Type.Array(Type.String(), { description: 'Headers that the gateway removes.' }),
})

export const explainRequest = {
  method: 'POST',
  path: '/admin/v1/explain',
  id: 'explainRequest',
  summary: 'Shows how the running configuration would handle a request',
  description:
    'The gateway sends nothing and counts nothing. The response has the format of `peage explain --json`.',
  caller: 'operator',
  roles: ['read', 'support'],
  body: terms.record({
    method: terms.text('The method, for example `GET`.'),
    path: terms.text('The path, for example `/api/v1/courses/1`, or a full URL.'),
    host: Type.Optional(terms.text('The host of the request.')),
    as: Type.Optional(
      Type.Unsafe<unknown>({
        description:
          'The caller to simulate: `anonymous` (default), a plan, `{"plan", "verified"?, "used_today"?, "used"?, "key"?, "scopes"?}`, or `{"user_id"}` for a stored user. `used` is the number of uses of the route’s quota in the current period. With `"key": true` or `scopes`, the caller sends an API key.',
      }),
    ),
    used_today: Type.Optional(
      terms.count(
        'Daily uses that the user has already spent today. Not allowed with `user_id`, because the user record contains this number.',
      ),
    ),
  }),
  responses: {
    200: {
      description: 'The result.',
      body: terms.record({
        request: terms.record({
          method: terms.text('The method of the request.'),
          path: terms.text('The path of the request.'),
          as: terms.text('The simulated caller: `anonymous` or the plan.'),
        }),
        route: terms.nullable(terms.text('The name of the matching route.')),
        guards: Type.Array(
          terms.record({
            guard: terms.text('The name of the guard.'),
            outcome: terms.oneOf(['pass', 'refuse', 'skip'], 'The decision of the guard.'),
            status: Type.Optional(Type.Integer({ description: 'The status code of the refusal.' })),
            error: Type.Optional(terms.text('The error code of the refusal.')),
          }),
          { description: 'The guards, in the order in which they run.' },
        ),
        status: terms.nullable(
          Type.Integer({
            description:
              'The status code of the refusal. If the request is allowed: 200 on a route without upstream, and `null` if an upstream or endpoint would respond.',
          }),
        ),
        upstream: terms.nullable(
          terms.record({
            name: terms.text('The name of the upstream.'),
            url: terms.text('The URL that the gateway would request.'),
          }),
        ),
        headers: terms.record({ request: diff, response: diff }),
      }),
    },
  },
  refusals: mergeRefusals(operatorRefusals, {
    400: ['request_invalid'],
    404: ['user_not_found'],
    413: ['body_too_large'],
  }),
} as const satisfies Operation

export function createExplainEndpoint(dependencies: AdminDependencies): AdminEndpoint {
  const { explain, plans, users, quotaRecords, clock } = dependencies
  return {
    operation: explainRequest,
    auditsRefusals: false,
    async handle({ body }) {
      const request = readRequest(body)
      const host = body.value('host')
      const given = body.value('as')
      const as = given === undefined ? 'anonymous' : given
      const record = typeof as === 'object' && as !== null ? as : {}
      const usedToday = readCount('used_today', body.value('used_today'))
      const question = { request, ...(host === undefined ? {} : { host: readHost(host) }) }
      const userId = new JsonObject(record).value('user_id')
      if (userId === undefined) return explain({ ...question, as: readCaller(as, usedToday, plans()) })
      if (!Number.isSafeInteger(userId) || Object.keys(record).length > 1) throw invalidField('as')
      if (usedToday !== undefined) throw invalidField('used_today')
      const user = orNotFound(await users.findById(userId as number))
      const usage = await readQuotaUsage(quotaRecords, user.id, plans().find(user.plan))
      return explain({ ...question, ...byRecord(user, usage, clock) })
    },
  }
}

/** Describes a stored user as the caller: plan, email verification, active state, today's uses, and uses of quotas. */
export function byRecord(
  user: User,
  usage: readonly QuotaUsage[],
  clock: Clock,
): Required<Pick<ExplainQuestion, 'as' | 'user'>> {
  const isToday = user.last_usage_date === utcDay(clock.now())
  return {
    as: {
      plan: user.plan,
      verified: user.email_verified_at !== null,
      used_today: isToday ? user.daily_usage : 0,
    },
    user: { id: user.id, isActive: user.is_active === 1, usage },
  }
}

function readRequest(body: JsonObject): ExplainQuestion['request'] {
  const [method, path] = [body.string('method').toUpperCase(), body.string('path')]
  for (const [field, text] of Object.entries({ method, path })) if (text === '') throw invalidField(field)
  return parsed('path', () => formats.request.parse(`${method} ${path}`))
}

function readHost(value: unknown): string {
  if (typeof value !== 'string') throw invalidField('host')
  return parsed('host', () => formats.host.parse(value))
}

function parsed<Value>(field: string, parse: () => Value): Value {
  try {
    return parse()
  } catch (error) {
    if (error instanceof FormatError) throw invalidField(field)
    throw error
  }
}

function readCaller(as: unknown, usedToday: number | undefined, plans: Plans): ExplainQuestion['as'] {
  if (as === 'anonymous') return as
  if (typeof as === 'string') return { plan: readPlan(as, plans), used_today: usedToday ?? 0 }
  if (typeof as !== 'object' || as === null || Array.isArray(as)) throw invalidField('as')
  const caller = new JsonObject(as)
  if (caller.names().some(name => !callerMembers.includes(name))) throw invalidField('as')
  const [plan, verified = true] = [caller.value('plan'), caller.value('verified')]
  const [key, scopes] = [caller.value('key'), caller.value('scopes')]
  if (typeof verified !== 'boolean' || (key !== undefined && key !== true)) throw invalidField('as')
  return {
    plan: readPlan(plan, plans),
    verified,
    used_today: readCount('as', caller.value('used_today')) ?? usedToday ?? 0,
    used: readCount('as', caller.value('used')) ?? 0,
    ...(key && { key }),
    ...(scopes !== undefined && { scopes: readScopes(scopes) }),
  }
}

const callerMembers = ['plan', 'verified', 'used_today', 'used', 'key', 'scopes']

/** @throws Refusal `request_invalid` unless the value is a list of scopes */
function readScopes(value: unknown): string[] {
  const isValid = Array.isArray(value) && value.every(scope => typeof scope === 'string' && isScope(scope))
  if (!isValid) throw invalidField('as')
  return value
}

/** @throws Refusal `request_invalid` if no plan of this name is configured */
function readPlan(name: unknown, plans: Plans): Plan {
  if (typeof name !== 'string' || plans.find(name) === undefined) throw invalidField('as')
  return name
}
