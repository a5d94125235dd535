// The gateway looks up names in the background. Complete, partial and missing DNS answers have different effects.
import type { LookupAddress } from 'node:dns'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createHistogram } from '../../../src/observability/metrics/histogram.ts'
import {
  createNameLookups,
  type NameWatch,
  type ResolveConfig,
} from '../../../src/upstream/targets/name-lookups.ts'
import type { OpenTarget } from '../../../src/upstream/targets/target.ts'
import { createUpstreams } from '../../../src/upstream/targets/upstreams.ts'
import { configOf } from '../../config/reading.ts'

type Answer = string[] | 'ENOTFOUND' | 'EAI_AGAIN' | 'silence'

const second = 1_000
const started: NameWatch[] = []

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  for (const watch of started.splice(0)) watch.stop()
  vi.useRealTimers()
})

/** Watches the name `app`. The name server returns the current answer in `answers` for IPv4 or IPv6. */
function watched(answers: { 4: Answer; 6: Answer }, config: Partial<ResolveConfig> = {}) {
  const asked: string[] = []
  const silent: ((found: LookupAddress[]) => void)[] = []
  const lookups = createNameLookups((name, family) => {
    asked.push(`${name} ${family}`)
    const answer = answers[family]
    if (answer === 'silence') return new Promise(resolve => silent.push(resolve))
    if (!Array.isArray(answer)) return Promise.reject(Object.assign(new Error(answer), { code: answer }))
    return Promise.resolve(answer.map(address => ({ address, family })))
  })
  const heard: { addresses: string[][]; states: (string | undefined)[]; tooMany: number[] } = {
    addresses: [],
    states: [],
    tooMany: [],
  }
  const watch = lookups.watch(
    'app',
    { every: 10 * second, most: 32, family: 'auto', ...config },
    {
      onAddresses: addresses => heard.addresses.push([...addresses]),
      onState: state => heard.states.push(state),
      onTooMany: count => heard.tooMany.push(count),
    },
  )
  started.push(watch)
  return { answers, asked, heard, silent, watch }
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

describe('a name', () => {
  it('is looked up at once, and again after each interval, plus or minus 10 %', async () => {
    const { asked, heard, watch } = watched({ 4: ['10.0.0.2', '10.0.0.1'], 6: 'ENOTFOUND' })
    await watch.firstAnswer
    expect(heard.addresses).toEqual([['10.0.0.1', '10.0.0.2']])
    await pass(60 * second)
    expect(asked.length).toBeGreaterThanOrEqual(6)
    expect(asked.length).toBeLessThanOrEqual(7)
  })

  it('is looked up for IPv6 only if it has no IPv4 address', async () => {
    const { answers, asked, heard, watch } = watched({ 4: 'ENOTFOUND', 6: ['fd00::1'] })
    await watch.firstAnswer
    expect([asked, heard.addresses]).toEqual([['app 4', 'app 6'], [['fd00::1']]])
    answers[4] = 'EAI_AGAIN'
    await pass(11 * second)
    expect(asked.slice(2)).toEqual(['app 4'])
    answers[4] = 'ENOTFOUND'
    answers[6] = 'EAI_AGAIN'
    await pass(11 * second)
    expect(heard.addresses).toEqual([['fd00::1']])
  })

  it.each([4, 6] as const)('is looked up only for IPv%i if `family` is set to this version', async family => {
    const { asked, watch } = watched({ 4: ['10.0.0.1'], 6: ['fd00::1'] }, { family })
    await watch.firstAnswer
    expect(asked).toEqual([`app ${family}`])
  })

  it('keeps its addresses while lookups fail, and reports the failure once and the recovery once', async () => {
    const { answers, heard, watch } = watched({ 4: ['10.0.0.1'], 6: 'ENOTFOUND' })
    await watch.firstAnswer
    answers[4] = 'EAI_AGAIN'
    await pass(24 * 3_600 * second)
    expect(heard).toMatchObject({ addresses: [['10.0.0.1']], states: ['EAI_AGAIN'] })
    answers[4] = ['10.0.0.2']
    await pass(11 * second)
    expect(heard).toMatchObject({ addresses: [['10.0.0.1'], ['10.0.0.2']], states: ['EAI_AGAIN', undefined] })
  })

  it.each([
    [10 * second, 300 * second],
    [600 * second, 3_600 * second],
  ])(
    'with an interval of %i ms keeps its last addresses for %i ms after the name server no longer has them',
    async (every, patience) => {
      const { answers, heard, watch } = watched({ 4: ['10.0.0.1'], 6: 'ENOTFOUND' }, { every })
      await watch.firstAnswer
      answers[4] = 'ENOTFOUND'
      await pass(patience - every)
      expect(heard.addresses).toEqual([['10.0.0.1']])
      await pass(3.3 * every)
      expect(heard.addresses.at(-1)).toEqual([])
      expect(heard.states).toEqual(['name not found'])
    },
  )

  it('with only link-local addresses has no allowed address', async () => {
    const { heard, watch } = watched({ 4: ['169.254.169.254'], 6: ['fd00::1'] })
    await watch.firstAnswer
    expect(heard).toMatchObject({ addresses: [], states: ['the name has no allowed address'] })
  })

  it('has at most as many addresses as `most` allows; addresses that are not allowed do not count', async () => {
    const { heard, watch } = watched(
      { 4: ['10.0.0.3', '169.254.0.1', '10.0.0.2', '10.0.0.1'], 6: [] },
      { most: 2 },
    )
    await watch.firstAnswer
    await pass(30 * second)
    expect(heard.addresses.at(-1)).toEqual(['10.0.0.1', '10.0.0.2'])
    expect(heard.tooMany).toEqual([3])
  })

  it('without a DNS answer delays the start by at most 2 s; IP addresses and localhost need no lookup', async () => {
    const { upstreams } = configOf(
      'upstreams: { app: { targets: ["http://app", "http://10.0.0.1", "http://localhost"] } }',
    )
    const targets: OpenTarget[] = []
    const opened = createUpstreams(upstreams, {
      lookups: createNameLookups(() => new Promise(() => {})),
      durationsOf: () => createHistogram(),
      reuse(_, open) {
        const target = open()
        targets.push(target)
        return target
      },
      eventsOf: () => ({ onLookup() {}, onTooMany() {} }),
    })
    let isResolved = false
    void opened.whenResolved().then(() => {
      isResolved = true
    })
    await pass(1_999)
    expect(isResolved).toBe(false)
    await pass(1)
    expect(isResolved).toBe(true)
    expect(targets.map(({ endpoints }) => endpoints().length)).toEqual([0, 1, 1])
    for (const target of targets) target.quiesce()
  })

  it('is looked up at once when a reload changes `family`; addresses that the new lookup also returns stay', async () => {
    const { asked, heard, watch } = watched({ 4: ['10.0.0.1'], 6: ['fd00::1'] })
    await watch.firstAnswer
    watch.configure({ every: 10 * second, most: 32, family: 4 })
    await pass(0)
    expect([asked, heard.addresses]).toEqual([['app 4', 'app 4'], [['10.0.0.1']]])
    watch.configure({ every: 10 * second, most: 32, family: 6 })
    await pass(0)
    expect(heard.addresses.at(-1)).toEqual(['fd00::1'])
    await pass(60 * second)
    expect(asked.length).toBeLessThanOrEqual(10)
  })

  it('becomes a different target when `resolve` changes to false; an IP address stays the same target', () => {
    const keysWith = (resolve: string) => {
      const { upstreams } = configOf(
        `upstreams: { app: { targets: ["http://app", "http://10.0.0.1"], resolve: ${resolve} } }`,
      )
      const keys: string[] = []
      createUpstreams(upstreams, {
        lookups: createNameLookups(() => new Promise(() => {})),
        durationsOf: () => createHistogram(),
        reuse(key, open) {
          keys.push(key)
          const target = open()
          target.quiesce()
          return target
        },
        eventsOf: () => ({ onLookup() {}, onTooMany() {} }),
      })
      return keys
    }
    const all = ['{ family: auto }', '{ family: 4 }', 'false'].map(keysWith)
    expect(all[0]?.[0]).toBe(all[1]?.[0])
    expect(all[0]?.[0]).not.toBe(all[2]?.[0])
    expect(new Set(all.map(([, literal]) => literal)).size).toBe(1)
  })

  it('is looked up once per new interval after a reload shortens the interval during a lookup', async () => {
    const { answers, asked, silent, watch } = watched({ 4: ['10.0.0.1'], 6: 'ENOTFOUND' })
    await watch.firstAnswer
    answers[4] = 'silence'
    await pass(11 * second)
    watch.configure({ every: second, most: 32, family: 'auto' })
    answers[4] = ['10.0.0.1']
    silent[0]?.([])
    await pass(10 * second)
    const before = asked.length
    await pass(20 * second)
    expect(asked.length - before).toBeLessThanOrEqual(23)
  })

  it('has only one running lookup at a time, even if two upstreams use it; lookups of other names run in parallel', async () => {
    const asked: string[] = []
    const answer: ((found: LookupAddress[]) => void)[] = []
    const lookups = createNameLookups(name => {
      asked.push(name)
      return new Promise(resolve => answer.push(resolve))
    })
    const ignore = { onAddresses() {}, onState() {}, onTooMany() {} }
    for (const name of ['app', 'app', 'other'])
      started.push(lookups.watch(name, { every: 10 * second, most: 32, family: 4 }, ignore))
    await pass(0)
    expect(asked).toEqual(['app', 'other'])
    answer[0]?.([])
    await pass(0)
    expect(asked).toEqual(['app', 'other', 'app'])
  })

  it('has a failed lookup if no DNS answer arrives within its interval; a later answer is still used', async () => {
    const { answers, asked, heard, silent, watch } = watched({ 4: 'silence', 6: 'ENOTFOUND' })
    await pass(10 * second)
    await watch.firstAnswer
    expect(heard.states).toEqual(['no response within 10000 ms'])
    await pass(60 * second)
    // The gateway starts no further lookup while the first one is unanswered.
    expect(asked).toEqual(['app 4'])
    answers[4] = ['10.0.0.1']
    silent[0]?.([{ address: '10.0.0.9', family: 4 }])
    await pass(0)
    expect(heard).toMatchObject({
      addresses: [['10.0.0.9']],
      states: ['no response within 10000 ms', undefined],
    })
    await pass(11 * second)
    expect(heard.addresses.at(-1)).toEqual(['10.0.0.1'])
  })
})
