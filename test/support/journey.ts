// Starts a gateway with one upstream and many kinds of routes. Most tests in test/journeys use this gateway.
import { beforeEach } from 'vitest'
import type { startGateway } from './gateway.ts'
import { gatewayBefore } from './gateway-before.ts'
import type { Setup } from './setups.ts'
import { startUpstream } from './upstream.ts'

/**
 * Returns an object whose fields are set before the first test. The list of received requests is cleared before each
 * test.
 * @param yamlOf gets the URL of the upstream, and returns the part of gateway.yaml from `upstreams:` to the end
 */
export function journey(
  setup: Setup,
  settings: Parameters<typeof startGateway>[2] = {},
  yamlOf: (upstream: string) => string = routes,
) {
  const at = gatewayBefore(startUpstream, yamlOf, settings, setup)
  beforeEach(() => {
    at.upstream.received.length = 0
    at.upstream.answer = undefined
  })
  return at
}

export function routes(upstream: string): string {
  return `upstreams:
  echo: { targets: ['${upstream}'], timeouts: { response: 1s } }
  nobody: { targets: ['http://127.0.0.1:1'] }
routes:
  - { name: courses, path: /courses/*, upstream: echo, free_daily: true }
  - { name: paid, path: /paid, upstream: echo, plans: [premium, pro] }
  - { name: pro, path: /pro, upstream: echo, plans: [pro] }
  - { name: any, path: /any/*, upstream: echo }
  - { name: optional, path: /optional, upstream: echo, auth: optional }
  - { name: optional-pro, path: /optional-pro, upstream: echo, auth: optional, plans: [pro] }
  - { name: optional-counted, path: /optional-counted, upstream: echo, auth: optional, free_daily: true }
  - { name: public, path: /public/*, upstream: echo, auth: none }
  - { name: read, path: /things/:id, upstream: echo, auth: none, methods: [GET] }
  - { name: write, path: /things/:id, upstream: echo, methods: [PUT, DELETE] }
  - { name: wide, path: /things/*, upstream: echo, auth: none }
  - { name: hosted, path: /hosted, upstream: echo, auth: none, hosts: [api.example.com] }
  - { name: stripped, path: /old/v1/races/*, upstream: echo, auth: none, strip_prefix: /old/v1 }
  - { name: rewritten, path: /old/v2/:kind/*, upstream: echo, auth: none, rewrite: /new/:kind/all/* }
  - { name: limited, path: /limited, upstream: echo, auth: none, max_body: 1KiB }
  - { name: credentials, path: /credentials, upstream: echo, forward_credentials: true }
  - { name: email, path: /email, upstream: echo, forward_email: true }
  - { name: slow, path: /slow, upstream: echo, timeout: 300ms, auth: none }
  - { name: down, path: /down, upstream: nobody, auth: none }
  - { name: down-counted, path: /down-counted, upstream: nobody, free_daily: true }
`
}
