// Sends the whole corpus through the gateway to three kinds of upstream: Node, nginx, and one with all lenient rules.
import { describe, expect, inject, it } from 'vitest'
import { startNginx } from '../support/nginx.ts'
import { describeWithNginx, isFullMatrix } from '../support/services.ts'
import { eitherSetup, embeddedSetup, type Setup } from '../support/setups.ts'
import { corpus, expand } from './corpus.ts'
import { openArena, secretPrefix } from './fuzz/arena.ts'
import type { Attack } from './fuzz/attack.ts'
import { openRange } from './fuzz/range.ts'
import { attacks as headerAttacks } from './header-cases.ts'

const one = (kind: string, text: string): Attack => ({ kind, text, cut: 0 })
const bearer = 'Authorization: Bearer <PREMIUM>'
const free = 'Authorization: Bearer <FREE>'
const request = (method: string, target: string, lines: readonly string[] = [], body = '') =>
  [`${method} ${target} HTTP/1.1`, 'Host: gw.test', ...lines, '', body].join('\r\n')

const paths = corpus.paths.flatMap(({ raw_target, raw_target_note }) => {
  const target = raw_target_note === undefined ? raw_target : Buffer.from(raw_target).toString('latin1')
  return [
    one('path', request('GET', target)),
    one('path, POST', request('POST', target, ['Content-Length: 5'], 'five!')),
    one('path, with a credential', request('GET', target, [bearer])),
    one('path, with a wrong credential', request('GET', target, ['Authorization: Bearer <TAMPERED>'])),
  ]
})

const fields = headerAttacks.flatMap(attack => {
  const lines = attack.lines.map(line =>
    expand(line)
      .replaceAll('<VALID>', '<PREMIUM>')
      .replaceAll('<OTHER>', '<PRO>')
      .replaceAll('<INVALID>', 'x'),
  )
  const places = [`${secretPrefix}/x`, '/public/x', '/api/v1/optional/x']
  return places.flatMap((place, i) => [
    // If the lines of an attack contain a Host, the request has two Host headers. Such a request is an attack too.
    one('fields, with a credential', request('GET', place, [bearer, ...lines])),
    ...(i < 2 ? [one('fields', request('GET', place, lines))] : []),
    ...(i < 1 ? [one('fields, counted', request('GET', '/api/v1/daily/x', [free, ...lines]))] : []),
  ])
})

const raw = corpus.raw_requests.flatMap(attack => {
  const text = expand(attack.raw)
  const authorized = text.replace(/\r\n/, `\r\n${bearer}\r\n`)
  return [one('raw', text), one('raw, with a credential', authorized), one('raw, cut', text)].map(
    (shot, i) => (i === 2 ? { ...shot, cut: Math.ceil(text.length / 2) } : shot),
  )
})

const everything = [...paths, ...fields, ...raw]

type Behavior = Parameters<typeof openArena>[2]

function suite(setup: Setup, reading: 'plain' | 'lax', before?: Behavior): void {
  it('violates no invariant', async () => {
    const stores = await setup.open()
    const arena = await openArena(stores, reading, before)
    try {
      const range = openRange(arena)
      const queue = everything.values()
      const breaches: unknown[] = []
      const lane = async () => {
        for (const attack of queue) {
          const violations = await range.fire(attack)
          if (violations.length > 0) breaches.push(range.breach(attack, violations))
        }
      }
      await Promise.all(Array.from({ length: 48 }, lane))
      breaches.push(...(await range.settle()))
      expect(breaches).toEqual([])
      for (const status of ['200 upstream', '400', '401', '431']) {
        expect(range.counts.byStatus[status]).toBeGreaterThan(10)
      }
    } finally {
      await arena.stop()
      await setup.drop(stores)
    }
  }, 120_000)
}

// How an upstream reads requests does not depend on the store. So only one kind of upstream is also tested with the
// second store.
if (isFullMatrix) {
  describe('the whole corpus against the most lenient upstream (embedded)', () => suite(embeddedSetup, 'lax'))
  describe('the whole corpus against Node', () => suite(eitherSetup(), 'plain'))
}
describe('the whole corpus against the most lenient upstream', () => suite(eitherSetup(), 'lax'))
describeWithNginx('the whole corpus against nginx', () =>
  suite(eitherSetup(), 'plain', upstream => startNginx(inject('nginxBin'), upstream, secretPrefix)),
)

it('the corpus contains all attacks, and more than 1,500 requests are made from them', () => {
  expect([corpus.paths.length, corpus.headers.length, corpus.raw_requests.length]).toEqual([94, 59, 71])
  expect(everything.length).toBeGreaterThan(1_500)
})
