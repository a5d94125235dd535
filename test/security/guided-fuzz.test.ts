// Runs the kept inputs of guided fuzzing against their targets. Also tests that coverage guides the search.
import { describe, expect, it } from 'vitest'
import type { Coverage } from './fuzz/guided/coverage.ts'
import { explore, tryOut } from './fuzz/guided/explore.ts'
import { readKept } from './fuzz/guided/kept.ts'
import { type Target, Violation } from './fuzz/guided/target.ts'
import { targets } from './fuzz/guided/targets.ts'

describe('the kept inputs of guided fuzzing', () => {
  it.each(Object.keys(targets))('violate no guarantee of the target %s', async name => {
    const target = await (targets[name] as (typeof targets)[string])()
    const inputs = readKept(name)
    try {
      expect(inputs.length).toBeGreaterThan(5)
      const outcomes = new Set<string>()
      for (const input of inputs) {
        const { outcome, violation } = await tryOut(target, input)
        expect(violation, JSON.stringify(input)).toBeUndefined()
        outcomes.add(outcome)
      }
      // The inputs must lead to several different outcomes.
      expect(outcomes.size).toBeGreaterThan(3)
    } finally {
      await target.close?.()
    }
  })
})

/**
 * Returns a target that fails if an input contains a certain word of six letters. Each correct letter of the word runs
 * new code, so coverage can guide the search.
 */
function planted(): { target: Target; coverage: Coverage } {
  const word = 'zebras'
  let ran = new Set<number>()
  const known = new Set<number>()
  const target: Target = {
    ...{ seeds: ['aaaaaaaa'], dictionary: ['zoo'], maxLength: 40, maxMs: 1_000, covers: /$^/ },
    run(input) {
      let reached = 0
      while (reached < word.length && input.includes(word.slice(0, reached + 1))) reached += 1
      for (let step = 0; step <= reached; step++) ran.add(step)
      if (reached === word.length) throw new Violation('the word was found')
      return 'not found'
    },
  }
  const coverage: Coverage = {
    take() {
      const now = ran
      ran = new Set()
      return {
        isNew: () => [...now].some(step => !known.has(step)),
        learn() {
          for (const step of now) known.add(step)
        },
      }
    },
  }
  return { target, coverage }
}

describe('guided fuzzing', () => {
  const plan = { seed: 7, kept: [], within: 60_000, cases: 200_000 }

  it('finds a planted word by mutating inputs that reached new code, and shrinks the finding', async () => {
    const { finding, cases } = await explore({ ...planted(), ...plan })
    expect(finding).toMatchObject({ input: 'zebras' })
    expect(finding?.message).toContain('the word was found')
    expect(cases).toBeLessThan(plan.cases)
  })

  it('does not find the planted word if it gets no coverage data', async () => {
    const { target } = planted()
    const blind: Coverage = { take: () => ({ isNew: () => false, learn() {} }) }
    const { finding, cases } = await explore({ target, coverage: blind, ...plan, cases: 20_000 })
    expect([finding, cases]).toEqual([undefined, 20_000])
  })

  it('reports any thrown error and any slow run as a finding', async () => {
    const { target } = planted()
    const slow = (): string => {
      const before = process.cpuUsage()
      while (process.cpuUsage(before).user < 20_000);
      return 'late'
    }
    const thrown = await tryOut({ ...target, run: () => JSON.parse('{') as string }, '')
    expect(thrown.violation).toContain('SyntaxError')
    expect((await tryOut({ ...target, maxMs: 5, run: slow }, '')).violation).toContain('the limit is 5 ms')
  })
})
