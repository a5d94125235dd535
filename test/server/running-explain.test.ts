// Each explanation uses only one configuration, even if a reload completes during the explanation.
import { expect, it } from 'vitest'
import type { ListedConfig } from '../../src/admin/configuration-record.ts'
import { systemClock } from '../../src/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createRunningExplain } from '../../src/server/running-explain.ts'

function load(routes: string): ListedConfig {
  const loaded = loadConfig({
    file: 'gateway.yaml',
    env: { SECRET: 'the-secret-of-a-service' },
    readFile: () => `upstreams: { service: { targets: ['http://127.0.0.1:9'] } }\nroutes:\n${routes}`,
    toServe: true,
  })
  if ('problems' in loaded) throw new Error(loaded.problems.map(({ message }) => message).join())
  const { config, listing } = loaded
  return { config, listing }
}
const secretRoute =
  "  - { name: secret, path: /secret, upstream: service, auth: none, headers: { request: { set: { x-key: '${SECRET}' } } } }\n"
const openRoute = '  - { name: open, path: /open, upstream: service, auth: none }\n'

it('an explanation masks the secrets even if a reload completes before the explanation ends', async () => {
  let active = load(secretRoute)
  const explain = createRunningExplain(() => active, systemClock)
  const question = { request: { method: 'GET', path: '/secret' }, as: 'anonymous' } as const
  const explanation = explain(question)
  // In the new configuration, the same route has another index. The index selects the values to mask. If the first
  // explanation used the new index, its secrets would be visible.
  active = load(openRoute + secretRoute)
  for (const document of [await explanation, await explain(question)]) {
    expect(document).toMatchObject({ route: 'secret', headers: { request: { set: { 'x-key': '***' } } } })
  }
})
