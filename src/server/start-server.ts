// A gateway that runs: opened in order, and ended in order (CONTRACT §1, signals).
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { openStores } from '../composition/dependencies.ts'
import type { Config } from '../config/schema/schema.ts'
import type { Tracing } from '../observability/tracing/tracing.ts'
import type { Backing, openBacking } from '../storage/open.ts'
import { once } from './once.ts'
import { type Chores, openChores } from './primary-services.ts'
import { createReload, type Reload, type Reloaded } from './reload.ts'
import { type Serving, serveHere } from './serve.ts'
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
  abandon(): void
}

interface Parts {
  config: Config
  clock: Clock
  logger: Logger
  /** Of this process, where it is the one that serves. */
  tracing?: Tracing | undefined
  /** How the stores are opened; whoever passes another may look into them. */
  open?: typeof openBacking
  /** Where the configuration came from, for a gateway that is to take what is saved there. */
  reloaded?: Reloaded | undefined
}

/** Migrates the database, then listens. @throws whatever keeps it from starting, with nothing left open */
export async function startServer(parts: Parts): Promise<RunningServer> {
  const opened = await openStores(parts)
  const { config, backing } = opened
  const undo: (() => Promise<unknown>)[] = [() => backing.close()]
  try {
    await backing.migrate()
    const serving = await (config.server.workers > 1 ? serveByWorkers : serveHere)(opened)
    undo.unshift(() => serving.close())
    const chores = await openChores(opened, serving)
    const { logger, metrics } = opened
    const { tallies } = metrics
    const reload = createReload({ config, reloaded: parts.reloaded, serving, chores, tallies, logger })
    const running = { serving, chores, backing, reload }
    return {
      address: serving.address,
      adminAddress: chores.adminAddress,
      stop: once(() => stop(running)),
      reload: reload.now,
      abandon: serving.abandon,
    }
  } catch (error) {
    for (const step of undo) await step().catch(() => {})
    throw error
  }
}

interface Running {
  serving: Serving
  chores: Chores
  backing: Backing
  reload: Reload
}

/** Resolves by the end of the time at the latest: a store that is away must not hold up the exit. */
async function stop(running: Running): Promise<void> {
  running.reload.stop()
  const timeout = running.reload.drainTimeout()
  let timer: NodeJS.Timeout | undefined
  const timeIsUp = new Promise<void>(resolve => {
    timer = setTimeout(resolve, timeout)
  })
  await Promise.race([stopInOrder(running, timeout), timeIsUp])
  clearTimeout(timer)
}

/** @param timeout `server.drain_timeout`, milliseconds */
async function stopInOrder({ serving, chores, backing }: Running, timeout: number): Promise<void> {
  const delivered = chores.endDeliveries(timeout * 0.5)
  await serving.drain(timeout)
  await delivered
  await Promise.all([serving.close(), chores.close()])
  await backing.close()
}
