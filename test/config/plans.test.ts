// Tests the plans that the configuration gets from a file, the limits for their number, and which names operators see.
import { describe, expect, it } from 'vitest'
import { linesOf as printedLines } from '../../src/config/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import { configOf, linesOf, load } from './reading.ts'

const upstreams = 'upstreams: { a: { targets: ["http://a"] } }'

describe('plans', () => {
  it('a file without plans gets the plans free, premium and pro, as if the file listed them', () => {
    const builtIn = '[{ name: free }, { name: premium }, { name: pro, api_keys: 5, webhook: true }]'
    expect(configOf('routes: []').plans).toEqual(configOf(`plans: ${builtIn}`).plans)
    expect(configOf('routes: []').plans).toEqual([
      { name: 'free', quotas: {}, api_keys: 0, webhook: false },
      { name: 'premium', quotas: {}, api_keys: 0, webhook: false },
      { name: 'pro', quotas: {}, api_keys: 5, webhook: true },
    ])
  })

  it('a plan has its allowances in the order of the file, and a variable may set an allowance', () => {
    const text = `plans:
  - { name: a, quotas: { z: 5/day, y: "0", x: 0, w: unlimited, v: "\${V}", u: "\${U}" }, rate_limit: 10/1m }
${upstreams}
routes:
  - { path: /v, upstream: a, quota: { name: v, cost: 3 } }
  - { path: /u, upstream: a, quota: u }`
    const { plans, routes } = configOf(text, { V: '1000000000/month', U: '0' })
    expect(Object.entries(plans[0]?.quotas ?? {})).toEqual([
      ['z', { text: '5/day', limit: 5, period: 'day' }],
      ['y', { text: '0', limit: 0, period: undefined }],
      ['x', { text: '0', limit: 0, period: undefined }],
      ['w', { text: 'unlimited', limit: Number.POSITIVE_INFINITY, period: undefined }],
      ['v', { text: '1000000000/month', limit: 1_000_000_000, period: 'month' }],
      ['u', { text: '0', limit: 0, period: undefined }],
    ])
    expect(plans[0]?.rate_limit).toEqual({ limit: 10, windowMs: 60_000 })
    expect(routes.map(({ quota }) => quota)).toEqual([
      { name: 'v', cost: 3 },
      { name: 'u', cost: 1 },
    ])
  })

  it('a file has at most 100 plans, and all plans together have at most 50 different quota names', () => {
    const plans = (count: number, quotasOf = (_: number) => '') =>
      `plans:\n${Array.from({ length: count }, (_, i) => `  - { name: p${i}, quotas: { ${quotasOf(i)} } }\n`).join('')}`
    const names = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => `q${from + i}: 0`).join(', ')
    expect(linesOf(plans(100))).toEqual([])
    expect(linesOf(plans(101))).toEqual(['2:3  plans  must be a list of 1 to 100 plans'])
    expect(linesOf(plans(2, i => (i === 0 ? names(0, 30) : names(10, 50))))).toEqual([])
    expect(linesOf(plans(2, i => (i === 0 ? names(0, 30) : names(10, 53))))).toEqual([
      expect.stringMatching(/^3:\d+ {2}plans\[1\]\.quotas\.q50 {2}.*50/),
    ])
    expect(linesOf(plans(2, i => (i === 0 ? names(0, 51) : names(0, 2))))).toEqual([
      expect.stringMatching(/^2:\d+ {2}plans\[0\]\.quotas\.q50 {2}.*50/),
    ])
    expect(linesOf(`plans: [{ name: a${'b'.repeat(31)}, quotas: { a${'b'.repeat(31)}: 1/day } }]`)).toEqual(
      [],
    )
  })
})

describe('problems with plans', () => {
  it('are printed in at most 100 lines if 300 routes use a quota that no plan has', () => {
    const plans = Array.from({ length: 100 }, (_, i) => `{ name: p${i} }`).join(', ')
    const routes = Array.from({ length: 300 }, (_, i) => `  - { path: /x${i}, upstream: a, quota: q }\n`)
    const loaded = load(`${upstreams}\nplans: [${plans}]\nroutes:\n${routes.join('')}`)
    if (!('problems' in loaded)) throw new Error('no problems')
    expect(printedLines(loaded)).toHaveLength(100)
    expect(printedLines(loaded)[99]).toContain('plan p99 ')
  })

  it('show quota names to operators, but mask a text that cannot be a quota name; the list of values does the same', () => {
    const at = (text: string) =>
      loadConfig({ file: 'gateway.yaml', env: {}, readFile: () => text, toServe: true })
    const bad = at(`${upstreams}
plans: [{ name: team, quotas: { exports: 5/week, Misplaced-Secret: 1/day } }]
routes: [{ path: /a, upstream: a, quota: reports }]`)
    if (!('problems' in bad)) throw new Error('no problems')
    expect(bad.listed?.map(({ path }) => path)).toEqual(['plans[0].quotas.exports', 'plans[0].quotas.?'])
    const good = at('plans: [{ name: team, quotas: { token: 5/day } }]')
    if ('problems' in good) throw new Error('problems')
    const listed = JSON.parse(good.listing ?? '') as { path: string; value: unknown }[]
    expect(listed).toContainEqual({ path: 'plans[0].quotas.token', value: '5/day', line: 1 })
  })
})
