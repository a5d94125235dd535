// The data plane with several workers. They are started, queried, reloaded and stopped together.
import type { GatewayProcess } from '../../composition/process.ts'
import type { Config } from '../../config/sections/schema.ts'
import { worstOf } from '../../upstream/targets/target-status.ts'
import type { DataPlane } from '../serve.ts'
import { createFork } from './fork.ts'
import { createMergedMetrics } from './merged-metrics.ts'
import { type PrepareReply, prepareTimeoutMs, replyTimeoutMs } from './protocol.ts'
import { createWorkerSlot, type WorkerSlot } from './supervisor.ts'

/** @throws Error with the reason of the first worker that cannot listen; no worker is left running */
export async function serveByWorkers({ startConfig, config, logger }: GatewayProcess): Promise<DataPlane> {
  const changesVisible = async () => {
    await Promise.all(slots.map(slot => slot.call('catch_up', replyTimeoutMs)))
  }
  const fork = createFork({ changes_visible: () => changesVisible().then(() => true) })
  const slots = Array.from({ length: startConfig.server.workers }, () =>
    createWorkerSlot({ fork, config: config.get, logger }),
  )
  const mergeMetrics = createMergedMetrics()
  const kill = () => {
    for (const slot of slots) slot.kill()
  }
  const end = async (time: number) => {
    await Promise.all(slots.map(slot => slot.end(time)))
  }
  try {
    const [address = ''] = await Promise.all(slots.map(slot => slot.open()))
    return {
      address,
      async prepare(next) {
        const rollback = async () => {
          await Promise.all(slots.map(slot => slot.call('finish', prepareTimeoutMs, 'rollback')))
        }
        const failure = await prepareInAll(slots, next)
        if (failure !== undefined) {
          await rollback()
          throw Object.assign(new Error(failure.error), { code: failure.code })
        }
        return {
          async commit() {
            // From now on, each worker that starts gets the new configuration.
            config.activate(next)
            const late = (await Promise.all(slots.map(commitIn))).filter(slot => slot !== undefined)
            return {
              late: late.map(({ pid }) => pid),
              everywhere: Promise.all(late.map(({ replaced }) => replaced)),
            }
          },
          rollback,
        }
      },
      changesVisible,
      async targetStatus() {
        const statuses = await Promise.all(slots.map(slot => slot.call('targetStatus', replyTimeoutMs)))
        return worstOf(statuses.map(status => status ?? []))
      },
      workers: {
        health: () =>
          Promise.all(
            slots.map(async slot => ({ pid: slot.pid(), stores: await slot.call('reach', replyTimeoutMs) })),
          ),
        async metrics(part) {
          const pending = slots.map(async slot => ({
            pid: slot.pid(),
            families: await slot.call('metrics', replyTimeoutMs, part),
          }))
          return mergeMetrics(await Promise.all(pending))
        },
      },
      drain: end,
      close: () => end(0),
      kill,
    }
  } catch (error) {
    kill()
    await end(0)
    throw error
  }
}

/**
 * Prepares the configuration in every worker. If a worker is replaced in the meantime, its replacement also prepares
 * the configuration.
 * @returns the reply of the first worker that failed; undefined if no worker failed
 */
async function prepareInAll(slots: readonly WorkerSlot[], config: Config): Promise<PrepareReply | undefined> {
  const prepared = new Map<WorkerSlot, number | undefined>()
  const unprepared = () => slots.filter(slot => slot.pid() !== undefined && slot.pid() !== prepared.get(slot))
  for (let pending = unprepared(); pending.length > 0; pending = unprepared()) {
    for (const slot of pending) prepared.set(slot, slot.pid())
    const replies = await Promise.all(pending.map(slot => prepareIn(slot, config)))
    const failure = replies.find(reply => reply.error !== undefined)
    if (failure !== undefined) return failure
  }
  return undefined
}

/**
 * Activates the prepared configuration in a worker. A worker that does not do this in time is replaced, because it
 * would otherwise keep the old configuration.
 */
async function commitIn(slot: WorkerSlot): Promise<{ pid: number; replaced: Promise<void> } | undefined> {
  const pid = slot.pid()
  const hasActivated = await slot.call('finish', prepareTimeoutMs, 'commit')
  // If the worker has exited, there is nothing to do here, because the supervisor replaces it.
  if (hasActivated || pid === undefined || slot.pid() !== pid) return undefined
  return { pid, replaced: slot.replace() }
}

/**
 * @returns the reply of the worker. If the worker exits before it replies, the reply is empty. This is not a failure,
 *   because its replacement starts with the active configuration.
 */
async function prepareIn(slot: WorkerSlot, config: Config): Promise<PrepareReply> {
  const pid = slot.pid()
  const answer = await slot.call('prepare', prepareTimeoutMs, config)
  if (answer === undefined && pid !== undefined && slot.pid() === pid) {
    return { error: `worker ${pid} does not respond` }
  }
  return answer ?? {}
}
