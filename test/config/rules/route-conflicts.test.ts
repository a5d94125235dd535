// Tests that `check` finds the same conflicts between routes as a comparison of all pairs. `check` itself uses maps.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { runs } from '../../support/property-runs.ts'
import { linesOf } from '../reading.ts'

interface Written {
  name?: string
  path: string
  hosts?: string[]
  methods?: string[]
}

const route: fc.Arbitrary<Written> = fc.record(
  {
    name: fc.constantFrom('a', 'b', 'c'),
    path: fc.constantFrom('/x', '/X/', '/x/*', '/:id', '/:other', '/:id/*', '/x/y', '/x%2Dy', '/x-y'),
    hosts: fc.uniqueArray(
      fc.constantFrom('one.test', 'two.test', 'ONE.test', '*.test', '*.one.test', '*.ONE.test.'),
      { minLength: 1 },
    ),
    methods: fc.uniqueArray(fc.constantFrom('GET', 'HEAD', 'POST'), { minLength: 1 }),
  },
  { requiredKeys: ['path'] },
)

const shapeOf = ({ path }: Written) =>
  decodeURIComponent(path).toLowerCase().replace(/:\w+/g, ':').replace(/\/$/, '')

function shareHost({ hosts: some }: Written, { hosts: others }: Written): boolean {
  if (some === undefined || others === undefined) return some === others
  const normal = (host: string) => host.toLowerCase().replace(/\.$/, '')
  return some.some(host => others.some(other => normal(host) === normal(other)))
}

function shareMethod({ methods: some }: Written, { methods: others }: Written): boolean {
  if (some === undefined || others === undefined) return true
  const withHead = (methods: string[]) => (methods.includes('GET') ? [...methods, 'HEAD'] : methods)
  return withHead(some).some(method => withHead(others).includes(method))
}

it('if a route has the same name or matches the same request as earlier routes, the problem names the first of these routes', () => {
  fc.assert(
    fc.property(fc.array(route, { maxLength: 8 }), routes => {
      const expected = routes.flatMap((one, index) => {
        const before = routes.slice(0, index)
        const sameName = before.findIndex(({ name }) => name !== undefined && name === one.name)
        const sameRequests = before.findIndex(
          other => shapeOf(one) === shapeOf(other) && shareHost(one, other) && shareMethod(one, other),
        )
        return [
          ...(sameName === -1 ? [] : [`routes[${index}].name  routes[${sameName}]`]),
          ...(sameRequests === -1 ? [] : [`routes[${index}].path  routes[${sameRequests}]`]),
        ]
      })
      const text = JSON.stringify({
        upstreams: { a: { targets: ['http://a'] } },
        routes: routes.map(written => ({ ...written, upstream: 'a', auth: 'none' })),
      })
      const said = linesOf(text).map(line =>
        line.replace(/^\d+:\d+ {2}(\S+ {2}).*?(routes\[\d+\]).*$/, '$1$2'),
      )
      expect(said.sort()).toEqual(expected.sort())
    }),
    { numRuns: runs(1_000) },
  )
})
