// Tests when a daily use is counted, and how a request of a user without remaining uses is refused.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { TargetAvailable } from '../../../src/gate/guards/available-target.ts'
import { createCountDailyUse } from '../../../src/gate/guards/count-daily-use.ts'
import { anonymous, type Identity } from '../../../src/identity/identity.ts'
import { ClientDisconnected, Refusal } from '../../../src/refusals/refusal.ts'
import type { EmbeddedDatabase } from '../../../src/storage/pglite/pglite.ts'
import type { Reservation } from '../../../src/upstream/reservation.ts'
import type { Endpoint } from '../../../src/upstream/targets/endpoint.ts'
import { createDailyCounter } from '../../../src/usage/daily-counter.ts'
import { createExhaustedUsers } from '../../../src/usage/exhausted-users.ts'
import { createUsageStore } from '../../../src/usage/usage-store.ts'
import { handFeed } from '../../support/hand-feed.ts'
import { lendDatabase } from '../../support/lent-database.ts'
import { addUser } from '../../support/users.ts'
import { bodyOf, fieldOf, guardedRequest, told, userIdentity } from './a-guarded-request.ts'

const noon = Date.UTC(2096, 1, 28, 12)
const clock = { at: noon, now: () => clock.at }

let database: EmbeddedDatabase
let user: Identity & { kind: 'user' }
let guard: ReturnType<typeof createCountDailyUse>
let cancelled: number
/**
 * If set, no connection to the upstream is free, and a request waits until the returned promise resolves. If undefined,
 * a connection is free.
 */
let wait: (() => Promise<void>) | undefined
/** Called when the guard has counted a use, before it decides about the request. */
let afterCount: () => void

beforeAll(async () => {
  database = await lendDatabase()
})
afterAll(() => database?.close())
beforeEach(async () => {
  clock.at = noon
  cancelled = 0
  wait = undefined
  const counter = createDailyCounter({
    ...{ store: createUsageStore(database), clock, dailyLimit: 1 },
    onFallback: () => {},
  })
  const spent = createExhaustedUsers({ feed: handFeed(), maxUsers: 100 })
  afterCount = () => {}
  const use = (id: number) =>
    counter.use(id).finally(() => {
      afterCount()
    })
  guard = createCountDailyUse({ counter: { use }, spent, limit: 1, clock })
  user = userIdentity({ id: await addUser(database) })
})

function aCountedRequest() {
  const cancel = () => {
    cancelled += 1
  }
  const endpoint = { pool: { cancel } } as unknown as Endpoint
  const reservation: Reservation = { endpoint, client: 0, connection: undefined }
  return {
    ...guardedRequest(),
    reserveConnection: () => (wait === undefined ? reservation : wait().then(() => reservation)),
  }
}

async function use(identity: Identity = user, request = aCountedRequest()) {
  try {
    const result = await guard(request, identity as TargetAvailable)
    return result instanceof Refusal ? { allowed: false as const, thrown: result } : result
  } catch (thrown) {
    return { allowed: false as const, thrown }
  }
}

async function stored(): Promise<number | undefined> {
  const [row] = await database.query<{ daily_usage: number }>('select daily_usage from users where id = $1', [
    user.user.id,
  ])
  return row?.daily_usage
}

it('a use is counted only for users with the plan `free`, and only if the request is forwarded to the upstream', async () => {
  const pro = userIdentity({ id: user.user.id, plan: 'pro' })
  const answered = aCountedRequest()
  const uncounted = [
    await use(pro),
    await use(anonymous),
    await use(user, { ...answered, head: { ...answered.head, isLastHop: true } }),
  ]
  expect(uncounted).toMatchObject(Array(3).fill({ allowed: true, reservation: undefined }))
  expect(await stored()).toBe(0)
  expect(await use()).toMatchObject({ allowed: true, identity: user, reservation: { client: 0 } })
  expect([await stored(), cancelled]).toEqual([1, 0])
})

it('a user without remaining uses is refused until midnight, and only the first refusal queries the store', async () => {
  await use()
  const refused = await use()
  expect([told(refused), fieldOf(refused, 'retry-after')]).toEqual(['429 daily_limit_reached', '43200'])
  expect(bodyOf(refused)).toMatchObject({ error: 'Limite quotidienne atteinte (plan free: 1 course/jour)' })
  expect(cancelled).toBe(1)
  expect(guard(aCountedRequest(), user as Identity as TargetAvailable)).toBeInstanceOf(Refusal)
  clock.at += 12 * 3_600_000
  expect(told(await use())).toBe(`access_token of ${user.user.id}`)
})

it('if midnight passes between the count and the refusal, the refusal has the header Retry-After: 1', async () => {
  clock.at = noon + 12 * 3_600_000 - 10_000
  await use()
  afterCount = () => {
    clock.at += 10_100
  }
  const refused = await use()
  expect([told(refused), fieldOf(refused, 'retry-after')]).toEqual(['429 daily_limit_reached', '1'])
  expect(told(await use())).toBe(`access_token of ${user.user.id}`)
})

it('a deleted user is refused, and the refusal is not cached', async () => {
  const missing = userIdentity({ id: 1_000_000 })
  for (let i = 0; i < 2; i += 1) expect(told(await use(missing))).toBe('429 daily_limit_reached')
  const next = guard(aCountedRequest(), missing as Identity as TargetAvailable)
  expect(next).toBeInstanceOf(Promise)
  await next
})

it('a use is counted only when a connection to the upstream is available', async () => {
  wait = async () => {
    throw new Refusal('upstream_unavailable')
  }
  expect(told(await use())).toBe('503 upstream_unavailable')
  let storedBefore: number | undefined
  wait = async () => {
    storedBefore = await stored()
  }
  expect(told(await use())).toBe(`access_token of ${user.user.id}`)
  expect([storedBefore, await stored()]).toEqual([0, 1])
})

it('if another request takes the last use, a request that waits for a connection is refused without a query to the store', async () => {
  wait = async () => {
    wait = undefined
    await use()
    await use()
    await database.query('delete from users where id = $1', [user.user.id])
  }
  const refused = await use()
  expect([told(refused), fieldOf(refused, 'retry-after')]).toEqual(['429 daily_limit_reached', '43200'])
  expect(cancelled).toBe(2)
})

it('no use is counted for a client that has disconnected', async () => {
  const gone = { ...aCountedRequest(), isGone: () => true }
  expect(await use(user, gone)).toEqual({ allowed: false, thrown: expect.any(ClientDisconnected) })
  expect(await stored()).toBe(0)
})

it('if the store fails, the reserved connection is released', async () => {
  const broken = createCountDailyUse({
    ...{ clock, limit: 1, spent: createExhaustedUsers({ feed: handFeed(), maxUsers: 1 }) },
    counter: { use: () => Promise.reject(new Error('down')) },
  })
  await expect(
    Promise.resolve(broken(aCountedRequest(), user as Identity as TargetAvailable)),
  ).rejects.toThrow('down')
  expect(cancelled).toBe(1)
})
