// What gateway.yaml may say: the one source of the types, of the JSON Schema, and of validation (CONTRACT §2).
// A key with a default is required here: defaults are filled in before anything is checked.
import type { StaticDecode, StaticEncode } from 'typebox'
import Type from 'typebox'
import { auth } from './schema/auth.ts'
import { type route, routes } from './schema/routes.ts'
import { admin, server } from './schema/server.ts'
import { limits, storage } from './schema/storage.ts'
import { subscription } from './schema/subscription.ts'
import { section } from './schema/terms.ts'
import { tests } from './schema/tests.ts'
import { type upstream, upstreams } from './schema/upstreams.ts'
import { webhooks } from './schema/webhooks.ts'

export const schema = section(
  {
    server,
    admin: Type.Optional(admin),
    storage,
    auth,
    limits,
    subscription,
    webhooks,
    upstreams,
    routes,
    tests,
  },
  { description: 'What the Péage gateway is to do.' },
)

export type Decoded = StaticDecode<typeof schema>
/** A route as it was written, defaults filled in, before its texts are read. */
export type WrittenRoute = StaticEncode<typeof route>

/** A declared route. Durations are milliseconds, sizes bytes, hosts in lower case without port and final dot. */
export type RouteConfig = StaticDecode<typeof route> & { name: string }
export type UpstreamConfig = StaticDecode<typeof upstream>

/** The whole configuration, every default applied. */
export type Config = Omit<Decoded, 'routes'> & {
  server: { workers: number }
  auth: { hashing: { concurrency: number } }
  routes: RouteConfig[]
}
