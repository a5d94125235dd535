// What `check` warns of: settings that a gateway starts with, though they are hardly what was meant.
import { describe, expect, it } from 'vitest'
import { linesOf, warningLinesOf } from '../../src/config/diagnostics.ts'
import { load } from './reading.ts'

function warningsIn(text: string): string[] {
  const loaded = load(text)
  if ('problems' in loaded) throw new Error(linesOf(loaded).join('\n'))
  return warningLinesOf(loaded.warnings)
}

const routes = 'routes: [{ path: /a, upstream: a }]'

describe('a warning', () => {
  it('is said of a target that stands twice in an upstream, however it is written', () => {
    expect(
      warningsIn(
        `upstreams:\n  a: { targets: ["http://h:80", "http://b", "HTTP://H/", "http://h"] }\n${routes}`,
      ),
    ).toEqual([
      'gateway.yaml:2:45  upstreams.a.targets[2]  warning: is the same address as targets[0], and is one target with the sum of their weights; keep one',
      'gateway.yaml:2:58  upstreams.a.targets[3]  warning: is the same address as targets[0], and is one target with the sum of their weights; keep one',
    ])
  })

  it('is said of targets that all have no weight, and of look-ups where there is no name', () => {
    const upstreams =
      'upstreams:\n  a: { targets: [{ url: "http://10.0.0.1", weight: 0 }, { url: "http://[::1]:81", weight: 0 }], resolve: { every: 1s } }'
    expect(warningsIn(`${upstreams}\n${routes}`)).toEqual([
      'gateway.yaml:2:17  upstreams.a.targets  warning: have no weight: every request is answered 503',
      'gateway.yaml:2:106  upstreams.a.resolve  warning: is for names, and every target here is an address',
    ])
    for (const targets of ['"http://10.0.0.1", "http://app"', '{ url: "http://app", weight: 1 }']) {
      expect(
        warningsIn(`upstreams:\n  a: { targets: [${targets}], resolve: { every: 1s } }\n${routes}`),
      ).toEqual([])
    }
  })

  const itself =
    'is the gateway itself (server.listen), which would forward each request to itself again; name the address of the service'
  const operators = "is the gateway's listener for operators (admin.listen); name the address of the service"
  it.each([
    ['0.0.0.0:8080', 'http://127.0.0.1:8080', itself],
    ['0.0.0.0:8080', 'http://localhost:8080', itself],
    ['0.0.0.0:8080', 'http://LOCALHOST.:8080', itself],
    ['0.0.0.0:8080', 'http://app.localhost:8080', itself],
    ['0.0.0.0:8080', 'http://127.1:8080', itself],
    ['0.0.0.0:8080', 'http://0.0.0.0:8080', itself],
    ['0.0.0.0:8080', 'https://127.0.0.9:8080', itself],
    ['0.0.0.0:8080', 'http://[::ffff:127.0.0.1]:8080', itself],
    ['0.0.0.0:80', 'http://127.0.0.1', itself],
    ['0.0.0.0:443', 'https://localhost', itself],
    ['[::]:8080', 'http://[::1]:8080', itself],
    ['[::]:8080', 'http://[::]:8080', itself],
    ['[::]:8080', 'http://127.0.0.1:8080', itself],
    ['[::1]:8080', 'http://localhost:8080', itself],
    ['localhost:8080', 'http://127.0.0.1:8080', itself],
    ['127.0.0.1:8080', 'http://0.0.0.0:8080', itself],
    ['192.0.2.1:8080', 'http://192.0.2.1:8080', itself],
    ['gw.internal:8080', 'http://GW.internal:8080', itself],
    ['0.0.0.0:8080', 'http://127.0.0.1:8081', operators],
    ['0.0.0.0:8080', 'http://localhost:8081', operators],
  ])('is said with the listener %s of the target %s', (listen, target, message) => {
    const listeners = `server: { listen: "${listen}" }\nadmin: { listen: "127.0.0.1:8081" }`
    for (const written of [`"${target}"`, `{ url: "${target}" }`]) {
      expect(warningsIn(`${listeners}\nupstreams:\n  a: { targets: [${written}] }\n${routes}`)).toEqual([
        `gateway.yaml:4:18  upstreams.a.targets[0]  warning: ${message}`,
      ])
    }
  })

  it.each([
    ['0.0.0.0:8080', 'http://127.0.0.1:9000'],
    ['0.0.0.0:0', 'http://127.0.0.1:80'],
    ['0.0.0.0:8080', 'http://app:8080'],
    ['0.0.0.0:8080', 'http://192.0.2.1:8080'],
    ['0.0.0.0:8080', 'http://[::1]:8080'],
    ['127.0.0.1:8080', 'http://127.0.0.2:8080'],
    ['127.0.0.1:8080', 'http://[::1]:8080'],
    ['[::1]:8080', 'http://127.0.0.1:8080'],
    ['0.0.0.0:8080', 'https://127.0.0.1'],
  ])('is not said with the listener %s of the target %s', (listen, target) => {
    const text = `server: { listen: "${listen}" }\nupstreams: { a: { targets: ["${target}"] } }\n${routes}`
    expect(warningsIn(text)).toEqual([])
  })

  it('is said of the gateway itself at its default address', () => {
    expect(warningsIn(`upstreams: { a: { targets: ["http://localhost:8080"] } }\n${routes}`)).toEqual([
      `gateway.yaml:1:29  upstreams.a.targets[0]  warning: ${itself}`,
    ])
  })

  it('is said of an upstream that no route leads to, at its name', () => {
    const upstreams = 'upstreams:\n  a: { targets: ["http://a"] }\n  spare: { targets: ["http://a"] }\n'
    expect(warningsIn(`${upstreams}${routes}`)).toEqual([
      'gateway.yaml:3:3  upstreams.spare  warning: no route leads to it',
    ])
  })

  it('is not said where all is used, and two upstreams may have a target in common', () => {
    const both = 'routes: [{ path: /a, upstream: a }, { path: /b, upstream: b }]'
    expect(
      warningsIn(`upstreams: { a: { targets: ["http://a"] }, b: { targets: ["http://a"] } }\n${both}`),
    ).toEqual([])
  })

  it('comes after what is wrong with the file; an upstream that a misspelt name may mean is not called unused', () => {
    const upstreams = 'upstreams: { a: { targets: ["http://a", "http://a"] } }'
    const loaded = load(`${upstreams}\nroutes: [{ path: /a, upstream: aa }]`)
    expect('problems' in loaded && linesOf(loaded)).toEqual([
      'gateway.yaml:2:32  routes[0].upstream  names no declared upstream; did you mean a?',
      'gateway.yaml:1:41  upstreams.a.targets[1]  warning: is the same address as targets[0], and is one target with the sum of their weights; keep one',
    ])
  })

  it('is told of a hundred at most', () => {
    const many = Array.from({ length: 130 }, (_, index) => `  u${index}: { targets: ["http://a"] }`).join(
      '\n',
    )
    const lines = warningsIn(`upstreams:\n${many}`)
    expect(lines).toHaveLength(101)
    expect(lines.at(-1)).toBe('… and 30 more warnings')
  })
})
