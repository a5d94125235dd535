// What clients reach, served by this process: listened for, and drained in order (CONTRACT §1, signals).
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { WorkerHealth } from '../admin/health.ts'
import type { Dependencies } from '../composition/dependencies.ts'
import { createGateway, type Gateway } from '../composition/gateway.ts'
import type { Config } from '../config/schema/schema.ts'
import { schemeOf } from '../http/http-server.ts'
import type { FamilyJson } from '../observability/metrics/families.ts'
import type { TargetStatus } from '../upstream/targets/target-status.ts'
import { createDrain } from './drain.ts'
import { once } from './once.ts'

/** Clients are served, by this process or by workers. */
export interface DataPlane {
  /** `http://host:port` or `https://host:port`, as really bound. */
  readonly address: string
  /**
   * Has every process make all that another configuration needs; nobody is served with it yet.
   * @throws Error with what keeps one of them from it; nothing is left open then
   */
  prepare(config: Config): Promise<PreparedChange>
  /** Resolves when what was changed in the database by now is in force for all of its clients. */
  changesVisible(): Promise<void>
  /** How every target stands, as the process sees it that is the worst off. */
  targetStatus(): Promise<readonly TargetStatus[]>
  /** The workers, where it is they that serve. */
  readonly workers?: {
    health(): Promise<WorkerHealth[]>
    /** What each has counted. */
    metrics(): Promise<(readonly FamilyJson[])[]>
  }
  /**
   * Accepts nothing more, answers what is in flight, and writes what is in memory.
   * @param time milliseconds; what is not answered by then is cut off
   */
  drain(time: number): Promise<void>
  /** Closes what it opened, and cuts off what was not drained; the storage is the caller's. */
  close(): Promise<void>
  /** Ends the processes that serve, at once: this one exits next. */
  kill(): void
}

/** A configuration that can be served with: one of the two is to be called, once. */
export interface PreparedChange {
  /** Resolves when it is in force for all clients: whoever is read from now on is served with it. */
  commit(): Promise<void>
  rollback(): Promise<void>
}

/**
 * @param everywhere as `createGateway` takes it; without it this process is all there is
 * @throws whatever keeps it from listening, with nothing left open
 */
export async function serveInProcess(
  dependencies: Dependencies,
  changesVisibleEverywhere = (here: () => Promise<void>) => here(),
): Promise<DataPlane> {
  const gateway = await createGateway({ ...dependencies, changesVisibleEverywhere })
  const { app } = gateway
  const drain = createDrain(app)
  const ended = once((time: number) => drain.run(time))
  async function close(): Promise<void> {
    await ended(0)
    await gateway.close()
  }
  try {
    await dependencies.storage.warmUp()
    // A copy: Fastify writes into it.
    await app.listen({ ...dependencies.config.server.listen })
  } catch (error) {
    await close()
    throw error
  }
  return {
    address: addressOf(app),
    async prepare(config) {
      const { take, drop } = await gateway.prepare(config)
      return { commit: async () => take(), rollback: async () => drop() }
    },
    changesVisible: gateway.changesVisible,
    targetStatus: async () => gateway.targetStatus(),
    async drain(time) {
      const end = performance.now() + time
      gateway.endStreams()
      // Requests leave a part of the time to what has to be written when they are over.
      await ended(time * 0.8)
      while (!(await isFlushed(gateway)) && performance.now() < end) await sleep(100)
      await dependencies.tracing?.close(end - performance.now())
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
