// What is done once, however many processes serve: the admin listener, deliveries, and forgetting what has had its time.
import { randomBytes } from 'node:crypto'
import { createSessionStore } from '../accounts/session-store.ts'
import { createAuditStore } from '../admin/audit-store.ts'
import { createHealth } from '../admin/health.ts'
import { createAdminListener } from '../admin/listener.ts'
import { createOperators, type Operators } from '../admin/operators.ts'
import { createDocumentation } from '../composition/api-description.ts'
import type { Opened } from '../composition/dependencies.ts'
import type { Config } from '../config/schema/schema.ts'
import { createRequestIdFor } from '../gate/parsing/request-ids.ts'
import { textOfAll } from '../observability/metrics/exposition.ts'
import { createPruner } from '../storage/pruner.ts'
import { createUserStore } from '../users/user-store.ts'
import { packageFacts } from '../version.ts'
import { type OpenAlerts, openAlerts } from '../webhooks/open-webhooks.ts'
import { createDrain, type Drain } from './drain.ts'
import { addressOf, type Serving } from './serve.ts'

export interface Chores {
  /** The admin listener's, where there is one. */
  readonly adminAddress: string | undefined
  /** From now on by another configuration. */
  take(config: Config): void
  /** Takes no delivery more. @param grace milliseconds for those that are under way */
  endDeliveries(grace: number): Promise<void>
  /** Closes what it opened; the backing is the caller's. */
  close(): Promise<void>
}

/** @throws whatever keeps the admin listener from listening, with nothing left open */
export async function openChores(
  opened: Opened,
  serving: Pick<Serving, 'inForce' | 'standing' | 'workers'>,
): Promise<Chores> {
  const { backing, clock, failureLog, metrics } = opened
  const sessions = createSessionStore(backing.database)
  const telling = openAlerts(opened.config.webhooks, opened, metrics.tallies.deliveries)
  let inForce = inForceOf(opened.config)
  const pruner = createPruner({
    store: sessions,
    clock,
    onError: error => failureLog('expired sessions not pruned', error),
  })
  let admin: { address: string; drain: Drain } | undefined
  const close = async () => {
    pruner.stop()
    await Promise.all([telling.stop(0), admin?.drain.run(0)])
  }
  try {
    admin = await listen(opened, serving, { inForce: () => inForce, sessions, telling })
  } catch (error) {
    await close()
    throw error
  }
  return {
    adminAddress: admin?.address,
    take(config) {
      inForce = inForceOf(config)
      telling.configure(config.webhooks)
    },
    endDeliveries: telling.stop,
    close,
  }
}

/** What the admin listener goes by, as it is at the moment. */
interface InForce {
  operators: Operators
  routes: Config['routes']
  warnings: string[]
}

function inForceOf(config: Config): InForce {
  const { token = '', tokens = {} } = config.admin ?? {}
  return {
    operators: createOperators({ token, ...tokens }),
    routes: config.routes,
    warnings: warningsOf(config),
  }
}

interface Rest {
  inForce(): InForce
  sessions: ReturnType<typeof createSessionStore>
  telling: OpenAlerts
}

async function listen(
  { config, backing, clock, logger, failureLog, metrics }: Opened,
  { inForce, standing, workers }: Pick<Serving, 'inForce' | 'standing' | 'workers'>,
  { inForce: current, sessions, telling: { alerts, deliveries } }: Rest,
): Promise<{ address: string; drain: Drain } | undefined> {
  for (const warning of current().warnings) logger.warn({}, warning)
  if (config.admin === undefined) return undefined
  const app = createAdminListener({
    operators: () => current().operators,
    routes: () => current().routes,
    standing,
    users: createUserStore(backing.database),
    sessions,
    alerts,
    deliveries,
    audit: createAuditStore(backing.database),
    inForce,
    expose: async () =>
      workers === undefined
        ? metrics.text()
        : textOfAll([await metrics.gather(), ...(await workers.metrics())]),
    health: createHealth({
      ...backing.checks,
      workers: workers?.health,
      warnings: () => current().warnings,
      isLastReloadGood: metrics.tallies.isLastReloadGood,
    }),
    documentation: () => createDocumentation(packageFacts().version),
    requestIdFor: createRequestIdFor(randomBytes),
    clock,
    logger,
    failureLog,
  })
  const drain = createDrain(app)
  // A copy: Fastify writes into it.
  await app.listen({ ...config.admin.listen })
  return { address: addressOf(app), drain }
}

/** What works but should not stay so in production. */
function warningsOf({ auth }: Config): string[] {
  if (auth.key_secret !== '') return []
  const bare = auth.keys.length > 0 ? 'webhook secrets stand' : 'signing keys and webhook secrets stand'
  return [`auth.key_secret is not set: ${bare} unencrypted in the database`]
}
