// Starts and stops a gateway. Its parts are opened and closed in order.
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { type GatewayProcess, openProcess } from '../composition/process.ts'
import type { Config } from '../config/sections/schema.ts'
import type { Tracing } from '../observability/tracing/tracing.ts'
import type { openStorage } from '../storage/open.ts'
import { type AdminListener, startAdminListener } from './admin-listener.ts'
import { type BackgroundWork, startBackgroundWork } from './background-work.ts'
import { once } from './once.ts'
import { createReload, type Reload, type ReloadSource } from './reload.ts'
import { type DataPlane, serveInProcess } from './serve.ts'

export interface RunningServer {
  /** The address to which the listener is bound, as `http://host:port` or `https://host:port`. */
  readonly address: string
  /** Undefined without an admin listener. */
  readonly adminAddress: string | undefined
  /** Requests that do not finish within `server.drain_timeout` are aborted. */
  stop(): Promise<void>
  /** Reads the configuration again. Resolves when it is active or was refused. The promise never rejects. */
  reload(): Promise<void>
  /** Kills the workers immediately, because this process exits next. */
  kill(): void
}

interface Options {
  config: Config
  clock: Clock
  logger: Logger
  /** Undefined if tracing is disabled, or if there are workers, which create their own spans. */
  tracing?: Tracing | undefined
  /** Replaceable, so that a test can inspect the stores. */
  open?: typeof openStorage
  /** The source of the configuration; undefined if changes are not reloaded. */
  reloadSource?: ReloadSource | undefined
}

/** Migrates the database, then listens. @throws the error if the gateway cannot start; nothing is left open */
export async function startServer(options: Options): Promise<RunningServer> {
  const gatewayProcess = await openProcess(options)
  const { startConfig, storage } = gatewayProcess
  const undo: (() => Promise<unknown>)[] = [() => storage.close()]
  try {
    await storage.migrate()
    const dataPlane = await (startConfig.server.workers > 1
      ? (await import('./workers/pool.ts')).serveByWorkers(gatewayProcess)
      : serveInProcess(gatewayProcess))
    undo.unshift(() => dataPlane.close())
    const background = startBackgroundWork(gatewayProcess, dataPlane)
    undo.unshift(() => background.close())
    const admin = await startAdminListener(gatewayProcess, {
      dataPlane,
      background,
      listing: options.reloadSource?.file.listing(),
    })
    undo.unshift(() => admin.close(0))
    const reload = createReload({
      gatewayProcess,
      source: options.reloadSource,
      dataPlane,
      onOutcome(outcome) {
        admin.reloaded(outcome)
        if (outcome.active !== undefined) background.checkPlans()
      },
    })
    const running = { gatewayProcess, dataPlane, background, admin, reload }
    return {
      address: dataPlane.address,
      adminAddress: admin.address,
      stop: once(() => stop(running)),
      reload: reload.now,
      kill: dataPlane.kill,
    }
  } catch (error) {
    await within(undoTimeoutMs, async () => {
      for (const step of undo) await step().catch(() => {})
    })
    throw error
  }
}

interface Running {
  gatewayProcess: GatewayProcess
  dataPlane: DataPlane
  background: BackgroundWork
  admin: AdminListener
  reload: Reload
}

/** Resolves within the drain timeout, because an unreachable store must not delay the exit. */
async function stop(running: Running): Promise<void> {
  running.reload.stop()
  const timeoutMs = running.gatewayProcess.config.get().server.drain_timeout
  await within(timeoutMs, () => stopInOrder(running, timeoutMs))
}

/**
 * The time limit for closing everything after a failed start. Without it, a store that does not respond would block the
 * exit.
 */
const undoTimeoutMs = 5_000

/** Resolves when `work` has resolved, or after `timeoutMs`. */
async function within(timeoutMs: number, work: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeIsUp = new Promise<void>(resolve => {
    timer = setTimeout(resolve, timeoutMs)
  })
  await Promise.race([work(), timeIsUp])
  clearTimeout(timer)
}

/** @param timeoutMs `server.drain_timeout` */
async function stopInOrder(
  { gatewayProcess, dataPlane, background, admin }: Running,
  timeoutMs: number,
): Promise<void> {
  const end = performance.now() + timeoutMs
  admin.beginStop()
  const sent = background.endSending(timeoutMs * 0.5)
  await dataPlane.drain(timeoutMs)
  await sent
  // The admin listener closes first, because requests of operators use the data plane. These requests get only a part
  // of the remaining time. The rest of the time is for the stores.
  await Promise.all([background.close(), admin.close(Math.max(0, end - performance.now()) * 0.8)])
  await dataPlane.close()
  await gatewayProcess.storage.close()
}
