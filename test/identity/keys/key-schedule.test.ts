// Tests which key signs at a given time, and at which time a key can be retired.
import { expect, it } from 'vitest'
import {
  assertionSignerAt,
  type KeyTimes,
  retirableFrom,
  signerAt,
} from '../../../src/identity/keys/key-schedule.ts'

const second = 1_000
const published = 310 * second
const key = (createdAt: number, signsFrom: number | null): KeyTimes => ({
  createdAt: createdAt * second,
  signsFrom: signsFrom === null ? null : signsFrom * second,
})
const lifetimes = { maxTokenTtlMs: 900 * second, usesAssertions: false }

it('the key whose start time was reached last signs tokens', () => {
  const [first, second_, third, waiting] = [key(0, 0), key(100, 105), key(110, 115), key(50, null)]
  const keys = [third, second_, first, waiting]
  const at = (time: number) => signerAt(keys, time * second)
  expect([at(-1), at(0), at(104.999), at(105), at(114.999), at(115)]).toEqual([
    undefined,
    first,
    first,
    second_,
    second_,
    third,
  ])
})

it('a rotation to a new key affects assertions 310 s after the publication of this key, a rotation to an old key at once', () => {
  const [first, second_, third] = [key(-1_000, 0), key(100, 105), key(200, 205)]
  const keys = [third, second_, first]
  expect(assertionSignerAt(keys, 100 * second + published - 1)).toBe(first)
  expect(assertionSignerAt(keys, 100 * second + published)).toBe(second_)
  expect(assertionSignerAt(keys, 200 * second + published)).toBe(third)
  const back = [key(-1_000, 300), third, second_]
  expect(assertionSignerAt(back, 300 * second)).toBe(back[0])
})

it('if every key was published too recently, the key that signs tokens also signs assertions', () => {
  const only = key(0, 0)
  expect(assertionSignerAt([only], 0)).toBe(only)
})

it('a key that signs or will sign cannot be retired, and a key that has never signed can always be retired', () => {
  const [first, next] = [key(0, 0), key(100, 105)]
  expect(retirableFrom(next, [next, first], lifetimes)).toBeUndefined()
  expect(retirableFrom(first, [first, key(10, null)], lifetimes)).toBeUndefined()
  expect(retirableFrom(key(10, null), [first], lifetimes)).toBe(10 * second)
})

it('a key can be retired when its last token has expired, even if a replica signed this token 5 s too late', () => {
  const [first, next, after] = [key(0, 0), key(100, 105), key(200, 205)]
  expect(retirableFrom(first, [after, next, first], lifetimes)).toBe((105 + 900 + 5) * second)
})

it('a key that also signs assertions can be retired at the earliest 65 s after its last assertion', () => {
  const [first, next] = [key(0, 0), key(100, 105)]
  const short = { maxTokenTtlMs: second, usesAssertions: true }
  expect(retirableFrom(first, [next, first], short)).toBe(100 * second + published + 65 * second)
  expect(retirableFrom(first, [next, first], { ...lifetimes, usesAssertions: true })).toBe(1_010 * second)
})
