// Compares the pool of shared resources with a model. A resource must be closed exactly once, and never while a
// snapshot uses it.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPasswords } from '../../src/accounts/password.ts'
import {
  createResourcePool,
  type Resource,
  type ResourceScope,
} from '../../src/composition/snapshot-resources.ts'
import type { SigningKeys } from '../../src/identity/keys/signing-keys.ts'

const seed = 20_261_122
/** The names of the resources. The first two resources are of the same kind. */
const names = ['keys a', 'keys b', 'passwords a'] as const
type Name = (typeof names)[number]
/** This resource closes immediately. Closing one of the other resources takes until the test calls `endClosing`. */
const immediate: Name = 'passwords a'

/** A created resource, and how often `quiesce` and `close` were called. */
interface Part {
  readonly name: Name
  readonly value: unknown
  quiesced: number
  closed: number
  /** Completes a running `close`. */
  endClosing: () => void
}

/** A simulated snapshot. It takes resources, is retired, and releases its resources after its last request. */
interface Holder {
  readonly scope: ResourceScope
  readonly parts: Map<Name, Part>
  state: 'active' | 'retired' | 'gone'
  /** The resources that `release` has to wait for, because they are still closing. */
  readonly waitsFor: Set<Part>
  isReleased: boolean
}

/** Waits until all promises have settled, except promises that wait for a later step of the test. */
const settled = () => new Promise(resolve => setImmediate(resolve))

const newPasswords = () => createPasswords({ concurrency: 1, queue: 0, wait: 0 })

const holder = fc.nat(5)
const step = fc.oneof(
  { weight: 2, arbitrary: fc.constant({ do: 'open' } as const) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('take' as const), holder, name: fc.constantFrom(...names) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('retire' as const), holder }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), holder }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('end closing' as const), part: fc.nat(20) }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
const steps = fc.array(step, { maxLength: 40, size: 'max' })

function stage() {
  const pool = createResourcePool()
  const made: Part[] = []
  const holders: Holder[] = []

  const holds = (part: Part, ...states: Holder['state'][]) =>
    holders.some(({ parts, state }) => states.includes(state) && parts.get(part.name) === part)

  function make<T>(name: Name, value: T): Resource<T> {
    let endClosing = () => {}
    const ended = new Promise<void>(resolve => {
      endClosing = resolve
    })
    const part: Part = { name, value, quiesced: 0, closed: 0, endClosing: () => {} }
    made.push(part)
    return {
      value,
      quiesce() {
        part.quiesced += 1
      },
      close() {
        part.closed += 1
        if (name === immediate) return
        part.endClosing = () => {
          endClosing()
          for (const { waitsFor } of holders) waitsFor.delete(part)
        }
        return ended
      },
    }
  }

  function getOrCreate({ kinds, getOrCreate }: ResourceScope, name: Name): unknown {
    if (name === 'passwords a') {
      return getOrCreate(kinds.passwords, 'a', () => make(name, newPasswords()))
    }
    const given = name === 'keys a' ? 'a' : 'b'
    return getOrCreate(kinds.signingKeys, given, () => make(name, new Promise<SigningKeys>(() => {})))
  }

  function take({ scope, parts }: Holder, name: Name): void {
    const shared = made.find(part => part.name === name && holds(part, 'active'))
    const before = made.length
    const value = getOrCreate(scope, name)
    expect(made.length - before).toBe(shared === undefined ? 1 : 0)
    const part = shared ?? made.at(-1)
    expect(value === part?.value).toBe(true)
    if (part !== undefined) parts.set(name, part)
  }

  function release(from: Holder): void {
    from.state = 'gone'
    for (const part of from.parts.values()) {
      if (part.name !== immediate && !holds(part, 'active', 'retired')) from.waitsFor.add(part)
    }
    void from.scope.release().then(() => {
      from.isReleased = true
    })
  }

  return {
    pool,
    made,
    holders,
    async run(each: Step) {
      const chosen = 'holder' in each ? holders[each.holder % holders.length] : undefined
      if (each.do === 'open') {
        const state = 'active'
        const scope = pool.openScope()
        holders.push({ scope, parts: new Map(), state, waitsFor: new Set(), isReleased: false })
      } else if (each.do === 'end closing') made[each.part % made.length]?.endClosing()
      else if (chosen === undefined || chosen.state === 'gone') return
      else if (each.do === 'take' && chosen.state === 'active') take(chosen, each.name)
      else if (each.do === 'retire') {
        // The random steps may retire one snapshot twice. The second call of `quiesce` must have no effect.
        chosen.scope.quiesce()
        chosen.state = 'retired'
      } else if (each.do === 'release') release(chosen)
      await settled()
    },
    expectTheModel() {
      const expected = made.map(part => ({
        quiesced: holds(part, 'active') ? 0 : 1,
        closed: holds(part, 'active', 'retired') ? 0 : 1,
      }))
      expect(made.map(({ quiesced, closed }) => ({ quiesced, closed }))).toEqual(expected)
      for (const { state, waitsFor, isReleased } of holders) {
        expect(isReleased).toBe(state === 'gone' && waitsFor.size === 0)
      }
    },
  }
}

describe('a resource that snapshots share', () => {
  it('is quiesced and never reused when no active snapshot uses it, and is closed exactly once when no snapshot uses it', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async all => {
        const { run, expectTheModel } = stage()
        for (const each of all) {
          await run(each)
          expectTheModel()
        }
      }),
      { seed, numRuns: 500 },
    )
  })

  it('is closed exactly once when the pool closes, even if a snapshot still uses it, and the pool waits until it is closed', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async all => {
        const { pool, made, holders, run } = stage()
        for (const each of all) await run(each)
        for (const { endClosing } of made) endClosing()
        const open = made.filter(({ closed }) => closed === 0)
        let isClosed = false
        const closing = pool.close().then(() => {
          isClosed = true
        })
        expect(made.map(({ closed }) => closed)).toEqual(made.map(() => 1))
        const last = open.filter(({ name }) => name !== immediate).pop()
        for (const part of open) if (part !== last) part.endClosing()
        await settled()
        expect(isClosed).toBe(last === undefined)
        last?.endClosing()
        await closing
        await Promise.all([...holders.map(({ scope }) => scope.release()), pool.close()])
        expect(made.map(({ closed }) => closed)).toEqual(made.map(() => 1))
      }),
      { seed, numRuns: 500 },
    )
  })

  it('is not stored if its creation fails, so the next scope creates it again', async () => {
    const pool = createResourcePool()
    const broken = pool.openScope()
    const failing = () => {
      throw new Error('no such file')
    }
    expect(() => broken.getOrCreate(broken.kinds.passwords, 'a', failing)).toThrow('no such file')
    await broken.release()
    const { kinds, getOrCreate } = pool.openScope()
    const value = newPasswords()
    expect(getOrCreate(kinds.passwords, 'a', () => ({ value })) === value).toBe(true)
    await pool.close()
  })
})
