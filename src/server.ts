// A gateway that listens: opened in order, and drained in order (CONTRACT §1, signals).
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { createHealth } from './admin/health.ts'
import { createAdminListener } from './admin/listener.ts'
import { type Backing, openBacking } from './backing/open.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config/schema.ts'
import { createDrain, type Drain } from './drain.ts'
import { createGateway, type Gateway } from './gateway.ts'
import { schemeOf } from './listening.ts'

export interface RunningServer {
  /** `http://host:port` or `https://host:port`, as really bound. */
  readonly address: string
  /** The admin listener's, where there is one. */
  readonly adminAddress: string | undefined
  /**
   * Accepts nothing more, answers what is in flight, writes what is in memory, and closes the stores.
   * What is not answered within `server.drain_timeout` is cut off.
   */
  stop(): Promise<void>
}

interface Parts {
  config: Config
  clock: Clock
  logger: Logger
  /** How the stores are opened; whoever passes another may look into them. */
  open?: typeof openBacking
}

/** Migrates the database, then listens. @throws whatever keeps it from starting, with nothing left open */
export async function startServer({
  config,
  clock,
  logger,
  open = openBacking,
}: Parts): Promise<RunningServer> {
  const { storage, auth, server, admin } = config
  const backing = await open({ storage, rate_limits: auth.rate_limits }, { logger, clock })
  const undo: (() => Promise<unknown>)[] = [() => backing.close()]
  try {
    await backing.migrate()
    const gateway = await createGateway({ config, backing, clock, logger })
    undo.unshift(() => gateway.close())
    const warnings = warningsOf(config)
    for (const warning of warnings) logger.warn({}, warning)

    const drain = createDrain(gateway.app)
    await gateway.app.listen(server.listen)
    undo.unshift(() => gateway.app.close())
    const adminApp =
      admin &&
      createAdminListener({
        tokens: operatorTokens(admin),
        users: gateway.users,
        sessions: gateway.sessions,
        alerts: gateway.alerts,
        deliveries: gateway.deliveries,
        inForce: gateway.inForce,
        health: createHealth({ ...backing.checks, warnings }),
        clock,
        logger,
      })
    const adminDrain = adminApp && createDrain(adminApp)
    await adminApp?.listen(admin?.listen)
    const running = { gateway, drain, adminDrain, backing, timeout: server.drain_timeout }
    return {
      address: addressOf(gateway.app),
      adminAddress: adminApp && addressOf(adminApp),
      stop: once(() => stop(running)),
    }
  } catch (error) {
    for (const step of undo) await step().catch(() => {})
    throw error
  }
}

interface Running {
  gateway: Gateway
  drain: Drain
  adminDrain: Drain | undefined
  backing: Backing
  /** `server.drain_timeout`, milliseconds. */
  timeout: number
}

/** Resolves by the end of the time at the latest: a store that is away must not hold up the exit. */
async function stop(running: Running): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeIsUp = new Promise<void>(resolve => {
    timer = setTimeout(resolve, running.timeout)
  })
  await Promise.race([stopInOrder(running), timeIsUp])
  clearTimeout(timer)
}

async function stopInOrder({ gateway, drain, adminDrain, backing, timeout }: Running): Promise<void> {
  const end = performance.now() + timeout
  const streams = gateway.endStreams(timeout * 0.5)
  // Requests leave a part of the time to what has to be written when they are over.
  await drain.run(timeout * 0.8)
  while (!(await isFlushed(gateway)) && performance.now() < end) await new Promise(go => setTimeout(go, 100))
  await streams
  await Promise.all([gateway.close(), adminDrain?.run(0)])
  await backing.close()
}

async function isFlushed(gateway: Gateway): Promise<boolean> {
  try {
    await gateway.flush()
    return true
  } catch {
    return false
  }
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => {
    running ??= work()
    return running
  }
}

/** By name; an empty token is none. */
function operatorTokens({ token, tokens }: NonNullable<Config['admin']>): Map<string, string> {
  return new Map(Object.entries({ token, ...tokens }).filter(([, value]) => value !== ''))
}

/** What works but should not stay so in production. */
function warningsOf({ auth }: Config): string[] {
  if (auth.key_secret !== '') return []
  const bare = auth.keys.length > 0 ? 'webhook secrets stand' : 'signing keys and webhook secrets stand'
  return [`auth.key_secret is not set: ${bare} unencrypted in the database`]
}

function addressOf(app: FastifyInstance): string {
  const { address, port, family } = app.server.address() as AddressInfo
  return `${schemeOf(app)}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
