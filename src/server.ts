// A gateway that listens: opened in order, and drained in order (CONTRACT §1, signals).
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { createHealth } from './admin/health.ts'
import { createAdminListener } from './admin/listener.ts'
import { openBacking } from './backing/open.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config/schema.ts'
import { createGateway, type Gateway } from './gateway.ts'

export interface RunningServer {
  /** `http://host:port`, as really bound. */
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

    await gateway.app.listen(server.listen)
    undo.unshift(() => gateway.app.close())
    const adminApp =
      admin &&
      createAdminListener({
        tokens: operatorTokens(admin),
        users: gateway.users,
        sessions: gateway.sessions,
        health: createHealth({
          ...backing.checks,
          warnings,
        }),
        clock,
        logger,
      })
    await adminApp?.listen(admin?.listen)
    return {
      address: addressOf(gateway.app),
      adminAddress: adminApp && addressOf(adminApp),
      stop: once(() => stop(gateway, adminApp, () => backing.close(), server.drain_timeout)),
    }
  } catch (error) {
    for (const step of undo) await step().catch(() => {})
    throw error
  }
}

async function stop(
  gateway: Gateway,
  admin: FastifyInstance | undefined,
  closeBacking: () => Promise<void>,
  drainTimeout: number,
): Promise<void> {
  const deadline = performance.now() + drainTimeout
  await drain(gateway.app, drainTimeout)
  await flush(gateway, deadline)
  await gateway.close()
  await admin?.close()
  await closeBacking()
}

/** Tried until it succeeds; but a store that is away must not hold up the exit for longer than the drain may take. */
async function flush(gateway: Gateway, deadline: number): Promise<void> {
  const flushed = gateway.flush().then(
    () => true,
    () => false,
  )
  if ((await flushed) || performance.now() > deadline) return
  await new Promise(resolve => setTimeout(resolve, 100))
  await flush(gateway, deadline)
}

/** Connections close as they become idle; those that are not by the deadline are cut. */
async function drain(app: FastifyInstance, timeout: number): Promise<void> {
  const server = app.server as Server
  const idle = setInterval(() => server.closeIdleConnections(), 50)
  const cut = setTimeout(() => server.closeAllConnections(), timeout)
  try {
    await app.close()
  } finally {
    clearInterval(idle)
    clearTimeout(cut)
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
  if (auth.keys.length > 0 || auth.key_secret !== '') return []
  return ['auth.key_secret is not set: signing keys stand unencrypted in the database']
}

function addressOf(app: FastifyInstance): string {
  const { address, port, family } = app.server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
