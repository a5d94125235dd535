// Runs a worker process, which only serves clients. The primary sends it configurations, queries its state and stops
// it.
import cluster from 'node:cluster'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { probeStores } from './admin/health.ts'
import { systemClock } from './clock.ts'
import type { PreparedChange } from './composition/gateway.ts'
import { type GatewayProcess, openProcess } from './composition/process.ts'
import { machineFailure, readLimited } from './config/read-file.ts'
import type { Config } from './config/sections/schema.ts'
import { openLog } from './observability/stdout.ts'
import { openTracing, readTracing } from './observability/tracing/open.ts'
import { type DataPlane, serveInProcess } from './server/serve.ts'
import {
  type PrepareReply,
  type PrimaryApi,
  replyTimeoutMs,
  type WorkerApi,
} from './server/workers/protocol.ts'
import { createRpcChannel } from './server/workers/rpc.ts'
import type { StoreChecks } from './storage/open.ts'
import { packageFacts } from './version.ts'

interface RunningWorker extends GatewayProcess {
  dataPlane: DataPlane
}

let running: RunningWorker | undefined
/** The prepared configuration, until the primary commits it or rolls it back. */
let prepared: PreparedChange | undefined
let preparing: Promise<unknown> | undefined

// Terminals and supervisors send signals to every process. A worker ignores them and acts only on calls from the
// primary.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

const api: WorkerApi = {
  async serve(config) {
    try {
      running = await begin(config)
      return { address: running.dataPlane.address }
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) }
    }
  },
  prepare(config) {
    const turn = prepare(config, preparing)
    preparing = turn
    return turn
  },
  finish,
  reach: async () =>
    running === undefined ? { postgres: false } : probeStores(withReplyTimeout(running.storage.checks)),
  metrics: async part => running?.metrics.gather(part) ?? [],
  targetStatus: async () => running?.dataPlane.targetStatus() ?? [],
  async catch_up() {
    await running?.dataPlane.changesVisible()
  },
  drain: end,
}

const primary = createRpcChannel<PrimaryApi>(process, api)
void primary.call('hello', undefined)

// Without this handler, Node would exit when the primary disconnects, and abort requests in flight.
cluster.worker?.once('disconnect', () => {
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true
  running?.logger.error('primary process ended; draining')
  void end(running?.config.get().server.drain_timeout ?? 0)
})

async function begin(config: Config): Promise<RunningWorker> {
  const logger = await openLog(process.stdout, config.server.log, { isShared: true, worker: process.pid })
  const version = packageFacts().version
  const tracing = await openTracing(readTracing(process.env, readLimited).traces, { logger, version })
  const opened = await openProcess({ config, clock: systemClock, logger, tracing })
  try {
    return { ...opened, dataPlane: await serveInProcess(opened, changesVisibleEverywhere) }
  } catch (error) {
    await opened.storage.close()
    throw error
  }
}

async function prepare(config: Config, before: Promise<unknown> | undefined): Promise<PrepareReply> {
  await before
  // If an earlier change is still prepared, the primary has abandoned it.
  await prepared?.rollback()
  prepared = undefined
  if (running === undefined) return { error: 'a worker is not ready yet' }
  try {
    prepared = await running.dataPlane.prepare(config)
    return {}
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error), code: machineFailure(error) }
  }
}

async function finish(how: 'commit' | 'rollback'): Promise<true> {
  await preparing
  const change = prepared
  prepared = undefined
  await change?.[how]()
  return true
}

/**
 * Waits until the changes are visible in all workers, because the client's next connection may reach another worker.
 */
async function changesVisibleEverywhere(here: () => Promise<void>): Promise<void> {
  const areVisible = await primary.call('changes_visible', 1.5 * replyTimeoutMs)
  if (!areVisible) await here()
}

/**
 * Limits the duration of each check. The limit is shorter than the time that the primary waits. So the primary receives
 * a reply that shows which store does not respond.
 */
function withReplyTimeout({ postgres, redis }: StoreChecks): StoreChecks {
  const late = async () => sleep(0.8 * replyTimeoutMs, false, { ref: false })
  return {
    postgres: () => Promise.race([postgres(), late()]),
    redis: redis && (() => Promise.race([redis(), late()])),
  }
}

async function end(time: number): Promise<never> {
  if (running !== undefined) await Promise.race([stop(running, time), sleep(time)])
  process.exit(0)
}

async function stop({ dataPlane, storage }: RunningWorker, time: number): Promise<void> {
  await dataPlane.drain(time)
  await dataPlane.close()
  await storage.close()
}
