// Whether this gateway can do its work (CONTRACT §7, `/readyz`).
import type { ReloadResult } from '../observability/metrics/counters.ts'
import type { StoreChecks } from '../storage/open.ts'

type Status = 'ok' | 'degraded' | 'down'

interface HealthReport {
  readonly status: Status
  readonly checks: Readonly<Record<string, Status>>
  /** What came of the last reload, unless its configuration is active in every process. */
  readonly configuration?: Exclude<ReloadResult, 'success'>
  /** Things that work, but not as they should in production. */
  readonly warnings?: readonly string[]
}

export interface Health {
  /** Whether a guard could decide. Losing Redis is `degraded`: Postgres alone holds the record. */
  readiness(): Promise<HealthReport>
  /** Whether unguarded routes can be served: they only need a process that accepts requests. */
  publicReadiness(): Promise<HealthReport>
}

/** Which stores respond. */
export interface StoreReachability {
  readonly postgres: boolean
  /** Absent where no Redis is configured. */
  readonly redis?: boolean
}

/** A worker's own report. */
export interface WorkerHealth {
  readonly pid: number | undefined
  /** Undefined when the worker does not respond in time, or is not running. */
  readonly stores: StoreReachability | undefined
}

interface Dependencies extends StoreChecks {
  /** With worker processes: one entry per worker, including those not running. */
  workers?: (() => Promise<WorkerHealth[]>) | undefined
  /** Warnings of the current configuration. */
  warnings(): readonly string[]
  lastReload(): ReloadResult
  /** Whether clients are accepted no more. */
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

/** Never rejects. */
export async function probeStores({ postgres, redis }: StoreChecks): Promise<StoreReachability> {
  const [isPostgresUp, isRedisUp] = await Promise.all([isAnswering(postgres), redis && isAnswering(redis)])
  return { postgres: isPostgresUp, ...(isRedisUp === undefined ? {} : { redis: isRedisUp }) }
}

function isAnswering(check: () => Promise<boolean>): Promise<boolean> {
  return check().catch(() => false)
}

/** A store that only some of the workers reach is `degraded`. */
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
  if (pid === undefined) return ['a worker has ended and is not replaced yet']
  if (stores === undefined) return [`worker ${pid} does not answer`]
  const unreachable = (['postgres', 'redis'] as const).filter(name => stores[name] === false)
  return unreachable.map(name => `worker ${pid} does not reach ${name}`)
}
