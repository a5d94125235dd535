// The load balancer picks an endpoint by weight or by user, and prefers healthy endpoints.
import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../../src/upstream/targets/endpoint.ts'
import { createLoadBalancer } from '../../../src/upstream/targets/load-balancer.ts'
import { hashText } from '../../../src/upstream/targets/rendezvous.ts'

interface Condition {
  available: boolean
  unchecked: boolean
  ejected: boolean
  free: boolean
  admits: boolean
}

const wellOff: Condition = { available: true, unchecked: false, ejected: false, free: true, admits: true }

const client = 1

/** Returns an endpoint that opens no connections. Tests set its state in `condition`. */
function endpoint(name: string) {
  const condition: Condition = { ...wellOff }
  const value: Endpoint = {
    name,
    origin: name,
    host: name,
    serverName: undefined,
    hash: hashText(name),
    pool: {
      admits: () => condition.admits,
      reserve: () => {},
      cancel: () => {},
      hasFree: () => condition.free,
      tryAcquire: () => undefined,
      acquire: () => Promise.reject(new Error('not connected')),
    },
    isAvailable: () => condition.available,
    isUnchecked: () => condition.unchecked,
    state: () => ({ checks: null, problem: null, circuit: null }),
    ejection: {
      isEjected: () => condition.ejected,
      beginAttempt: () => () => {},
      readmit: () => {},
    },
    beginAttempt: () => () => {},
  }
  return { value, condition }
}

type Stub = ReturnType<typeof endpoint>

function target(origin: string, weight: number, endpoints: Stub[]) {
  return {
    weight,
    target: { origin, hash: hashText(origin), endpoints: () => endpoints.map(({ value }) => value) },
  }
}

function named(prefix: string, count: number): Stub[] {
  return Array.from({ length: count }, (_, index) => endpoint(`${prefix}${index}`))
}

function counts(picks: (string | undefined)[]): Record<string, number> {
  const counted: Record<string, number> = {}
  for (const pick of picks) counted[pick ?? 'none'] = (counted[pick ?? 'none'] ?? 0) + 1
  return counted
}

describe('targets', () => {
  it('get exactly their share, by weight, of any 11 consecutive requests', () => {
    const pick = createLoadBalancer([
      target('a', 100, named('a', 1)),
      target('b', 10, named('b', 1)),
      target('c', 0, named('c', 1)),
    ])
    const picks = Array.from({ length: 1_100 }, () => pick(undefined, [], client)?.name)
    for (let start = 0; start + 11 <= picks.length; start += 1) {
      expect(counts(picks.slice(start, start + 11))).toEqual({ a0: 10, b0: 1 })
    }
  })

  it('share their requests evenly among their addresses', () => {
    const pick = createLoadBalancer([target('a', 3, named('a', 3)), target('b', 1, named('b', 2))])
    expect(counts(Array.from({ length: 24 }, () => pick(undefined, [], client)?.name))).toEqual({
      a0: 6,
      a1: 6,
      a2: 6,
      b0: 3,
      b1: 3,
    })
  })

  it('keep their shares while some of their addresses are unavailable', () => {
    const app = named('app', 3)
    const pick = createLoadBalancer([target('app', 100, app), target('canary', 10, named('canary', 1))])
    for (const { condition } of app.slice(1)) condition.available = false
    expect(counts(Array.from({ length: 110 }, () => pick(undefined, [], client)?.name))).toEqual({
      app0: 100,
      canary0: 10,
    })
  })

  it('do not get extra requests after they were unavailable', () => {
    const [a, b] = [named('a', 1), named('b', 1)]
    const pick = createLoadBalancer([target('a', 1, a), target('b', 1, b)])
    for (const { condition } of b) condition.available = false
    expect(counts(Array.from({ length: 50 }, () => pick(undefined, [], client)?.name))).toEqual({ a0: 50 })
    for (const { condition } of b) condition.available = true
    expect(counts(Array.from({ length: 10 }, () => pick(undefined, [], client)?.name))).toEqual({
      a0: 5,
      b0: 5,
    })
  })

  it('share requests exactly by weight, even if one target is alternately free and busy', () => {
    const b = named('b', 1)
    const pick = createLoadBalancer([
      target('a', 2, named('a', 1)),
      target('b', 1, b),
      target('c', 1, named('c', 1)),
    ])
    const picks = Array.from({ length: 120 }, (_, turn) => {
      for (const { condition } of b) condition.free = turn % 2 === 0
      return pick(undefined, [], client)?.name
    })
    expect(counts(picks.filter((_, turn) => turn % 2 === 0))).toEqual({ a0: 30, b0: 15, c0: 15 })
    expect(counts(picks.filter((_, turn) => turn % 2 === 1))).toEqual({ a0: 40, c0: 20 })
  })
})

describe('the load balancer', () => {
  const [a, b] = [endpoint('a'), endpoint('b')]
  const pick = createLoadBalancer([target('a', 1, [a]), target('b', 1, [b])])
  const picksWith = (condition: Partial<Condition>, tried: Endpoint[] = []) => {
    Object.assign(b.condition, wellOff, condition)
    return new Set(Array.from({ length: 4 }, () => pick(undefined, tried, client)?.name))
  }

  it.each<[string, Partial<Condition>]>([
    ['ejected', { ejected: true }],
    ['without a free connection', { free: false }],
    ['unable to admit the client', { admits: false }],
    ['unavailable', { available: false }],
    ['not checked yet', { available: false, unchecked: true }],
  ])('never picks an endpoint that is %s while another endpoint is healthy', (_, condition) => {
    expect(picksWith(condition)).toEqual(new Set(['a']))
  })

  it('picks an ejected or busy endpoint if all endpoints are ejected or busy', () => {
    a.condition.free = false
    expect(picksWith({ ejected: true })).toEqual(new Set(['a', 'b']))
    a.condition.free = true
  })

  it('picks an endpoint that has not been checked yet only if no other endpoint is available', () => {
    a.condition.available = false
    expect(picksWith({ available: false, unchecked: true })).toEqual(new Set(['b']))
    a.condition.available = true
  })

  it('picks an endpoint twice for one request only if there is no other endpoint', () => {
    expect(picksWith({}, [b.value])).toEqual(new Set(['a']))
    expect(picksWith({ available: false }, [a.value])).toEqual(new Set(['a']))
    expect(picksWith({ available: false, unchecked: true }, [a.value])).toEqual(new Set(['a']))
  })

  it('never picks an endpoint whose target has the weight 0', () => {
    expect(createLoadBalancer([target('a', 0, [a])])(undefined, [], client)).toBeUndefined()
  })
})

describe('splitting by user', () => {
  const users = Array.from({ length: 100_000 }, (_, id) => hashText(String(id + 1)))

  it('gives a user the same endpoint in every process, and distributes users by weight', () => {
    const make = () =>
      createLoadBalancer([target('http://a', 100, named('a', 2)), target('http://b', 50, named('b', 1))])
    const [one, other] = [make(), make()]
    const picks = users.map(user => one(user, [], client)?.name)
    expect(users.map(user => other(user, [], client)?.name)).toEqual(picks)
    const shares = counts(picks)
    for (const name of ['a0', 'a1', 'b0']) expect((shares[name] ?? 0) / users.length).toBeCloseTo(1 / 3, 2)
  })

  it('moves only its share of the users to a new endpoint, and only from other endpoints of the same target', () => {
    const [a, b] = [named('a', 4), named('b', 1)]
    const before = createLoadBalancer([target('http://a', 100, a.slice(0, 3)), target('http://b', 100, b)])
    const grown = createLoadBalancer([target('http://a', 100, a), target('http://b', 100, b)])
    const moved = users.filter(user => before(user, [], client) !== grown(user, [], client))
    expect(moved.every(user => grown(user, [], client)?.name === 'a3')).toBe(true)
    expect(moved.length / users.length).toBeCloseTo(1 / 8, 2)
  })

  it('moves a user to another endpoint while the usual endpoint is unavailable', () => {
    const [a] = [named('a', 3)]
    const pick = createLoadBalancer([target('http://a', 100, a)])
    const before = pick(users[0], [], client)
    const condition = a.find(({ value }) => value === before)?.condition
    Object.assign(condition ?? {}, { available: false })
    expect(pick(users[0], [], client)).not.toBe(before)
    Object.assign(condition ?? {}, { available: true })
    expect(pick(users[0], [], client)).toBe(before)
  })
})
