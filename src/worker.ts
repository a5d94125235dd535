// A worker: serves clients and does nothing else; its primary says what with, asks how it is, and tells it to end.
import cluster from 'node:cluster'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { reachOf, type StoreChecks } from './admin/health.ts'
import { inSlices } from './async/steps.ts'
import { systemClock } from './clock.ts'
import { type Opened, openStores } from './composition/dependencies.ts'
import { type PackedConfig, unpackSteps } from './config/reading/packed-config.ts'
import type { Config } from './config/schema/schema.ts'
import { openLog } from './observability/stdout.ts'
import { openTracing } from './observability/tracing/open.ts'
import { tracingSettings } from './observability/tracing/settings.ts'
import { type Prepared, type Serving, serveHere } from './server/serve.ts'
import { type AskedOfPrimary, type AskedOfWorker, patience } from './server/workers/protocol.ts'
import { createLine } from './server/workers/rpc.ts'
import { packageFacts } from './version.ts'

interface Work extends Omit<Opened, 'config'> {
  /** In force. */
  config: Config
  serving: Serving
}

let work: Work | undefined
/** Another configuration, which waits for the other workers. */
let prepared: { config: Config; change: Prepared } | undefined
let preparing: Promise<unknown> | undefined

// A terminal and a supervisor send them to all processes; it is the primary that says what follows.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

const answers: AskedOfWorker = {
  async serve(config) {
    try {
      work = await begin(await inSlices(unpackSteps(config)))
      return { address: work.serving.address }
    } catch (error) {
      return { fault: error instanceof Error ? error.message : String(error) }
    }
  },
  prepare(config) {
    const turn = prepare(config, preparing)
    preparing = turn
    return turn
  },
  settle,
  reach: async () => (work === undefined ? { postgres: false } : reachOf(inTime(work.backing.checks))),
  metrics: async () => work?.metrics.gather() ?? [],
  standing: async () => work?.serving.standing() ?? [],
  async catch_up() {
    await work?.serving.inForce()
  },
  drain: end,
}

const primary = createLine<AskedOfPrimary>(process, answers)
void primary.ask('hello', undefined)

// Node would exit here, whatever is in flight.
cluster.worker?.once('disconnect', () => {
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true
  work?.logger.error('the primary process has ended: draining')
  void end(work?.config.server.drain_timeout ?? 0)
})

async function begin(config: Config): Promise<Work> {
  const logger = openLog(process.stdout, config.server.log, { isShared: true, worker: process.pid })
  const version = packageFacts().version
  const tracing = await openTracing(tracingSettings(process.env), { logger, version })
  const opened = await openStores({ config, clock: systemClock, logger, tracing })
  try {
    return { ...opened, serving: await serveHere(opened, everywhere) }
  } catch (error) {
    await opened.backing.close()
    throw error
  }
}

async function prepare(
  packed: PackedConfig,
  before: Promise<unknown> | undefined,
): Promise<{ fault?: string }> {
  await before
  // The primary gave up on it.
  await prepared?.change.drop()
  prepared = undefined
  if (work === undefined) return { fault: 'a worker does not serve yet' }
  try {
    const config = await inSlices(unpackSteps(packed))
    prepared = { config, change: await work.serving.prepare(config) }
    return {}
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) }
  }
}

async function settle(how: 'take' | 'drop'): Promise<true> {
  await preparing
  if (work === undefined || prepared === undefined) return true
  if (how === 'take') {
    work.config = prepared.config
    work.logger.level = prepared.config.server.log.level
  }
  const { change } = prepared
  prepared = undefined
  await change[how]()
  return true
}

/** Its clients may be the other workers' with their next connection. */
async function everywhere(here: () => Promise<void>): Promise<void> {
  const isInForce = await primary.ask('in_force', 1.5 * patience)
  if (!isInForce) await here()
}

/** The primary waits for the answer only so long, and has to hear which store it is that does not answer. */
function inTime({ postgres, redis }: StoreChecks): StoreChecks {
  const late = async () => sleep(0.8 * patience, false, { ref: false })
  return {
    postgres: () => Promise.race([postgres(), late()]),
    redis: redis && (() => Promise.race([redis(), late()])),
  }
}

async function end(time: number): Promise<never> {
  if (work !== undefined) await Promise.race([stop(work, time), sleep(time)])
  process.exit(0)
}

async function stop({ serving, backing }: Work, time: number): Promise<void> {
  await serving.drain(time)
  await serving.close()
  await backing.close()
}
