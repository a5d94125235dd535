// Runs the data plane in this process: listens for clients, serves them, and drains at the end.
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { WorkerHealth } from '../admin/health.ts'
import {
  type ChangesVisibleEverywhere,
  createGateway,
  type Gateway,
  type PreparedChange,
} from '../composition/gateway.ts'
import type { GatewayProcess } from '../composition/process.ts'
import type { Config } from '../config/sections/schema.ts'
import { schemeOf } from '../http/http-server.ts'
import type { MetricsPart } from '../observability/metrics/exposition.ts'
import type { FamilyJson } from '../observability/metrics/families.ts'
import type { TargetStatus } from '../upstream/targets/target-status.ts'
import { createDrain } from './drain.ts'
import { once } from './once.ts'

/** Serves clients, in this process or in workers. */
export interface DataPlane {
  /** The address to which the listener is bound, as `http://host:port` or `https://host:port`. */
  readonly address: string
  /**
   * Prepares a new configuration in every process. Requests do not use it yet.
   * @throws Error with the reason if a process fails; nothing is left open
   */
  prepare(config: Config): Promise<PreparedChange>
  /** Resolves when the clients see the effect of every database change that is already committed. */
  changesVisible(): Promise<void>
  /**
   * Returns the status of every target. If a target has different statuses in several processes, the worst one is
   * returned.
   */
  targetStatus(): Promise<readonly TargetStatus[]>
  /** Absent if this process serves clients itself. */
  readonly workers?: {
    health(): Promise<WorkerHealth[]>
    metrics(part: MetricsPart): Promise<(readonly FamilyJson[])[]>
  }
  /**
   * Accepts no more connections, finishes requests in flight, and writes everything that is only in memory.
   * @param time the time limit for all of this, in milliseconds; after a part of this time, unfinished requests are
   *   aborted
   */
  drain(time: number): Promise<void>
  /**
   * Closes everything that the data plane opened, including connections that are still open. The caller closes the
   * storage.
   */
  close(): Promise<void>
  /** Kills the workers immediately, because this process exits next. */
  kill(): void
}

/**
 * @param changesVisibleEverywhere as for `createGateway`; the default is for a single process
 * @throws the error if the gateway cannot listen; nothing is left open
 */
export async function serveInProcess(
  gatewayProcess: GatewayProcess,
  changesVisibleEverywhere: ChangesVisibleEverywhere = here => here(),
): Promise<DataPlane> {
  const gateway = await createGateway(gatewayProcess, changesVisibleEverywhere)
  const { app } = gateway
  const drain = createDrain(app)
  const ended = once((time: number) => drain.run(time))
  async function close(): Promise<void> {
    await ended(0)
    await gateway.close()
  }
  try {
    // Copies the address, because Fastify modifies it.
    await app.listen({ ...gatewayProcess.startConfig.server.listen })
  } catch (error) {
    await close()
    throw error
  }
  return {
    address: addressOf(app),
    prepare: gateway.prepare,
    changesVisible: gateway.changesVisible,
    targetStatus: async () => gateway.targetStatus(),
    async drain(time) {
      const end = performance.now() + time
      gateway.endStreams()
      // Requests get only a part of the time. The rest is for writing the data that is still only in memory.
      await ended(time * 0.8)
      while (!(await isFlushed(gateway)) && performance.now() < end) await sleep(100)
      await gatewayProcess.tracing?.close(end - performance.now())
    },
    close,
    kill() {},
  }
}

async function isFlushed(gateway: Gateway): Promise<boolean> {
  try {
    await gateway.flush()
    return true
  } catch {
    return false
  }
}

export function addressOf(app: FastifyInstance): string {
  const { address, port, family } = app.server.address() as AddressInfo
  return `${schemeOf(app)}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
