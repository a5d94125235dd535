// Looking names up in the background: what an answer, none, or half of one changes, and when.
import type { LookupAddress } from 'node:dns'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  createNameLookups,
  type NameWatch,
  type ResolveConfig,
} from '../../../src/upstream/targets/name-lookups.ts'

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

/** A name server with the answers that a test gives it. */
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
  it('is looked up at once and then at its interval, give or take a tenth', async () => {
    const { asked, heard, watch } = watched({ 4: ['10.0.0.2', '10.0.0.1'], 6: 'ENOTFOUND' })
    await watch.firstAnswer
    expect(heard.addresses).toEqual([['10.0.0.1', '10.0.0.2']])
    await pass(60 * second)
    expect(asked.length).toBeGreaterThanOrEqual(6)
    expect(asked.length).toBeLessThanOrEqual(7)
  })

  it('is asked for IPv6 only where the answer is that there is no IPv4', async () => {
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

  it.each([4, 6] as const)('is asked for IPv%i alone where that is set', async family => {
    const { asked, watch } = watched({ 4: ['10.0.0.1'], 6: ['fd00::1'] }, { family })
    await watch.firstAnswer
    expect(asked).toEqual([`app ${family}`])
  })

  it('keeps its addresses as long as look-ups fail, says so once, and once that they work', async () => {
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
  ])('without addresses, looked up every %i ms, keeps the last for %i ms', async (every, patience) => {
    const { answers, heard, watch } = watched({ 4: ['10.0.0.1'], 6: 'ENOTFOUND' }, { every })
    await watch.firstAnswer
    answers[4] = 'ENOTFOUND'
    await pass(patience - every)
    expect(heard.addresses).toEqual([['10.0.0.1']])
    await pass(3.3 * every)
    expect(heard.addresses.at(-1)).toEqual([])
    expect(heard.states).toEqual(['no such name'])
  })

  it('with link-local addresses alone has none that may be dialled', async () => {
    const { heard, watch } = watched({ 4: ['169.254.169.254'], 6: ['fd00::1'] })
    await watch.firstAnswer
    expect(heard).toMatchObject({ addresses: [], states: ['it names no address that may be dialled'] })
  })

  it('has at most as many addresses as set, those that may not be dialled not counted', async () => {
    const { heard, watch } = watched(
      { 4: ['10.0.0.3', '169.254.0.1', '10.0.0.2', '10.0.0.1'], 6: [] },
      { most: 2 },
    )
    await watch.firstAnswer
    await pass(30 * second)
    expect(heard.addresses.at(-1)).toEqual(['10.0.0.1', '10.0.0.2'])
    expect(heard.tooMany).toEqual([3])
  })

  it('that is not answered within its interval counts as failed, and the answer is taken when it comes', async () => {
    const { answers, asked, heard, silent, watch } = watched({ 4: 'silence', 6: 'ENOTFOUND' })
    await pass(10 * second)
    await watch.firstAnswer
    expect(heard.states).toEqual(['no answer within 10000 ms'])
    await pass(60 * second)
    // One at a time: nothing else was asked meanwhile.
    expect(asked).toEqual(['app 4'])
    answers[4] = ['10.0.0.1']
    silent[0]?.([{ address: '10.0.0.9', family: 4 }])
    await pass(0)
    expect(heard).toMatchObject({
      addresses: [['10.0.0.9']],
      states: ['no answer within 10000 ms', undefined],
    })
    await pass(11 * second)
    expect(heard.addresses.at(-1)).toEqual(['10.0.0.1'])
  })
})
