// A gateway that runs: opened in order, and ended in order (CONTRACT §1, signals).
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { createDependencies } from '../composition/dependencies.ts'
import type { Config } from '../config/schema/schema.ts'
import type { Tracing } from '../observability/tracing/tracing.ts'
import type { openStorage, Storage } from '../storage/open.ts'
import { once } from './once.ts'
import { type PrimaryServices, startPrimaryServices } from './primary-services.ts'
import { createReload, type Reload, type ReloadSource } from './reload.ts'
import { type DataPlane, serveInProcess } from './serve.ts'
import { serveByWorkers } from './workers/pool.ts'

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
  /** Reads the configuration again. Resolves when that is in force, or refused; never rejects. */
  reload(): Promise<void>
  /** Ends at once what runs beside this process, which exits next. */
  kill(): void
}

interface Options {
  config: Config
  clock: Clock
  logger: Logger
  /** Of this process, where it is the one that serves. */
  tracing?: Tracing | undefined
  /** How the stores are opened; whoever passes another may look into them. */
  open?: typeof openStorage
  /** Where the configuration came from, for a gateway that is to take what is saved there. */
  reloadSource?: ReloadSource | undefined
}

/** Migrates the database, then listens. @throws whatever keeps it from starting, with nothing left open */
export async function startServer(parts: Options): Promise<RunningServer> {
  const dependencies = await createDependencies(parts)
  const { config, storage } = dependencies
  const undo: (() => Promise<unknown>)[] = [() => storage.close()]
  try {
    await storage.migrate()
    const dataPlane = await (config.server.workers > 1 ? serveByWorkers : serveInProcess)(dependencies)
    undo.unshift(() => dataPlane.close())
    const primaryServices = await startPrimaryServices(dependencies, dataPlane)
    const { logger, metrics } = dependencies
    const { counters } = metrics
    const reload = createReload({
      config,
      source: parts.reloadSource,
      dataPlane,
      primaryServices,
      counters,
      logger,
    })
    const running = { dataPlane, primaryServices, storage, reload }
    return {
      address: dataPlane.address,
      adminAddress: primaryServices.adminAddress,
      stop: once(() => stop(running)),
      reload: reload.now,
      kill: dataPlane.kill,
    }
  } catch (error) {
    for (const step of undo) await step().catch(() => {})
    throw error
  }
}

interface RunningParts {
  dataPlane: DataPlane
  primaryServices: PrimaryServices
  storage: Storage
  reload: Reload
}

/** Resolves by the end of the time at the latest: a store that is away must not hold up the exit. */
async function stop(running: RunningParts): Promise<void> {
  running.reload.stop()
  const timeoutMs = running.reload.drainTimeoutMs()
  let timer: NodeJS.Timeout | undefined
  const timeIsUp = new Promise<void>(resolve => {
    timer = setTimeout(resolve, timeoutMs)
  })
  await Promise.race([stopInOrder(running, timeoutMs), timeIsUp])
  clearTimeout(timer)
}

/** @param timeout `server.drain_timeout`, milliseconds */
async function stopInOrder(
  { dataPlane, primaryServices, storage }: RunningParts,
  timeoutMs: number,
): Promise<void> {
  const delivered = primaryServices.stopDeliveries(timeoutMs * 0.5)
  await dataPlane.drain(timeoutMs)
  await delivered
  await Promise.all([dataPlane.close(), primaryServices.close()])
  await storage.close()
}
