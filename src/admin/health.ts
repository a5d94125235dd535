// Determines whether the gateway is ready to serve requests, for `/readyz`.
import type { ReloadResult } from '../observability/metrics/counters.ts'
import type { StoreChecks } from '../storage/open.ts'

type Status = 'ok' | 'degraded' | 'down'

interface HealthReport {
  readonly status: Status
  readonly checks: Readonly<Record<string, Status>>
  /** The result of the last reload. Absent if every process uses the reloaded configuration. */
  readonly configuration?: Exclude<ReloadResult, 'success'>
  /** Warnings about settings that are not suitable for production, and about problems of single workers. */
  readonly warnings?: readonly string[]
}

export interface Health {
  /**
   * Reports whether routes with guards can be served. If only Redis is unavailable, the status is `degraded`, not
   * `down`, because all data that must not be lost is in Postgres.
   */
  readiness(): Promise<HealthReport>
  /** Reports whether unguarded routes can be served. These routes need no store. */
  publicReadiness(): Promise<HealthReport>
}

export interface StoreReachability {
  readonly postgres: boolean
  /** Absent if no Redis is configured. */
  readonly redis?: boolean
}

export interface WorkerHealth {
  readonly pid: number | undefined
  /** Undefined if the worker does not respond in time, or is not running. */
  readonly stores: StoreReachability | undefined
}

interface Dependencies extends StoreChecks {
  /** Returns one entry per worker, even for a worker that is not running. Undefined without worker processes. */
  workers?: (() => Promise<WorkerHealth[]>) | undefined
  warnings(): readonly string[]
  lastReload(): ReloadResult
  /** Whether the gateway no longer accepts clients. */
  isStopping(): boolean
}

export function createHealth(dependencies: Dependencies): Health {
  const { workers, warnings, lastReload, isStopping, ...stores } = dependencies
  const serving = (workerHealths: readonly WorkerHealth[] | undefined): Record<string, Status> => ({
    ...(workerHealths === undefined ? {} : { workers: workersStatus(workerHealths) }),
    ...(isStopping() ? { listener: 'down' } : {}),
  })
  return {
    async readiness() {
      const [own, workerHealths] = await Promise.all([probeStores(stores), workers?.()])
      const checks = { ...checksOf(own, workerHealths), ...serving(workerHealths) }
      const configuration = lastReload()
      const allWarnings = [...warnings(), ...(workerHealths ?? []).flatMap(workerWarnings)]
      return {
        status: statusOf(checks),
        checks,
        ...(configuration === 'success' ? {} : { configuration }),
        ...(allWarnings.length === 0 ? {} : { warnings: allWarnings }),
      }
    },
    async publicReadiness() {
      const checks = serving(await workers?.())
      return { status: statusOf(checks), checks }
    },
  }
}

/** Checks which stores respond. Never rejects. */
export async function probeStores({ postgres, redis }: StoreChecks): Promise<StoreReachability> {
  const [isPostgresUp, isRedisUp] = await Promise.all([isAnswering(postgres), redis && isAnswering(redis)])
  return { postgres: isPostgresUp, ...(isRedisUp === undefined ? {} : { redis: isRedisUp }) }
}

function isAnswering(check: () => Promise<boolean>): Promise<boolean> {
  return check().catch(() => false)
}

/** A store is `degraded` if only some of the workers can reach it. */
function checksOf(own: StoreReachability, workers: readonly WorkerHealth[] = []): Record<string, Status> {
  const workerStores = workers.flatMap(({ stores }) => stores ?? [])
  const statusOfStore = (name: 'postgres' | 'redis'): Status => {
    if (!own[name]) return 'down'
    const reachable = workerStores.filter(reach => reach[name]).length
    if (reachable === workerStores.length) return 'ok'
    return reachable === 0 ? 'down' : 'degraded'
  }
  return {
    postgres: statusOfStore('postgres'),
    ...(own.redis === undefined ? {} : { redis: statusOfStore('redis') }),
  }
}

function workersStatus(workers: readonly WorkerHealth[]): Status {
  const up = workers.filter(({ stores }) => stores !== undefined).length
  if (up === workers.length) return 'ok'
  return up === 0 ? 'down' : 'degraded'
}

function statusOf({ redis, ...required }: Record<string, Status>): Status {
  const statuses = Object.values(required)
  if (statuses.includes('down')) return 'down'
  return statuses.includes('degraded') || (redis ?? 'ok') !== 'ok' ? 'degraded' : 'ok'
}

function workerWarnings({ pid, stores }: WorkerHealth): string[] {
  if (pid === undefined) return ['a worker has exited and is being replaced']
  if (stores === undefined) return [`worker ${pid} does not respond`]
  const unreachable = (['postgres', 'redis'] as const).filter(name => stores[name] === false)
  return unreachable.map(name => `worker ${pid} cannot reach ${name}`)
}
