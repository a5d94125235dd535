// Defines what gateway.yaml may contain. The types, the JSON Schema and the validation are all derived from this
// schema. A key with a default is required here, because defaults are filled in before validation.
import type { Decoded, Written } from '../../schema/type.ts'
import { Type } from '../../schema/type.ts'
import { admin } from './admin.ts'
import { auth } from './auth.ts'
import { formatted, section } from './builders.ts'
import { events } from './events.ts'
import { mail } from './mail.ts'
import { plans } from './plans.ts'
import type { provider } from './providers.ts'
import { type route, routes } from './routes.ts'
import { server } from './server.ts'
import { limits, storage } from './storage.ts'
import { tests } from './tests.ts'
import { type upstream, upstreams } from './upstreams.ts'

const webhooks = section(
  {
    allow_private_networks: Type.Boolean({
      description:
        'Allow receivers at loopback, private and reserved addresses. Only for tests and closed networks.',
      default: false,
    }),
    timeout: formatted('duration', {
      description: 'Maximum duration of one delivery, from the name lookup to the end of the response.',
      default: '10s',
    }),
    retention: formatted('lifetime', {
      description: 'Time that deliveries stay in the delivery log, counted from the time of the alert.',
      default: '30d',
    }),
  },
  { description: 'Alerts to the webhooks of users.', default: {} },
)

const account = section(
  {
    deletion: Type.Boolean({
      description:
        'Allow users to delete their account with DELETE /api/v1/auth/account. false: the response is 404.',
      default: false,
    }),
  },
  { description: 'Permissions of users for their own account.', default: {} },
)

const subscription = section(
  {
    upgrade_url: formatted('upgrade_url', {
      description:
        'Payment page to which POST /api/v1/subscription/upgrade sends the user. The gateway fills in {user_id} and {plan}. Empty: the response is 501.',
      default: '',
    }),
  },
  { description: 'Upgrades to another plan.', default: {} },
)

export const schema = section(
  {
    server,
    admin: Type.Optional(admin),
    storage,
    auth,
    account,
    plans,
    limits,
    subscription,
    webhooks,
    mail: Type.Optional(mail),
    events: Type.Optional(events),
    upstreams,
    routes,
    tests,
  },
  { description: 'Configuration of the Péage gateway.' },
)

export type DecodedConfig = Decoded<typeof schema>
/** A route of the file with defaults filled in. Its texts, for example durations, are not decoded yet. */
export type RouteInput = Written<typeof route>

/** Durations are in milliseconds and sizes in bytes. Hosts are in lower case, without port and final dot. */
export type RouteConfig = Decoded<typeof route> & { name: string }
export type PlanConfig = DecodedConfig['plans'][number]
export type UpstreamConfig = Decoded<typeof upstream>

type MailSection = NonNullable<DecodedConfig['mail']>

/** The mail settings. If `mail.smtp` is empty, `Config` contains no mail settings. */
export type MailConfig = Omit<MailSection, 'smtp' | 'from' | 'product'> & {
  smtp: NonNullable<MailSection['smtp']>
  from: NonNullable<MailSection['from']>
  product: string
}

/** A provider with a client ID. The list `audiences` contains no empty texts. */
export type ProviderConfig = Decoded<typeof provider> & { name: string; label: string }

/** The settings of the service that receives events. `Config` contains none if `events.url` is empty. */
export type EventsConfig = NonNullable<DecodedConfig['events']>

export type Config = Omit<DecodedConfig, 'routes' | 'mail' | 'auth'> & {
  mail?: MailConfig
  server: { workers: number }
  auth: Omit<DecodedConfig['auth'], 'providers'> & {
    hashing: { concurrency: number }
    /** The providers with a client id, in the order of the file. */
    providers: ProviderConfig[]
  }
  routes: RouteConfig[]
}
