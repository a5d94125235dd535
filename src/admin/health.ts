// Whether this gateway can do its work (CONTRACT §7, `/readyz`).

type Mark = 'ok' | 'degraded' | 'down'

export interface HealthReport {
  readonly status: Mark
  readonly checks: Readonly<Record<string, Mark>>
  /** What was saved last could not be taken: the gateway works, as it was configured before. */
  readonly configuration?: 'refused'
  /** What works, but not as it should in production. */
  readonly warnings?: readonly string[]
}

export interface Health {
  /** Whether a guard could decide. Redis lost is `degraded`: Postgres alone is the record. */
  ofGuards(): Promise<HealthReport>
  /** Whether unguarded routes can be served: they need nothing but a process that serves. */
  ofPublicRoutes(): Promise<HealthReport>
}

/** Which stores answer. */
export interface Reach {
  readonly postgres: boolean
  /** Absent where no Redis is configured. */
  readonly redis?: boolean
}

/** What a worker says of itself. */
export interface WorkerHealth {
  readonly pid: number | undefined
  /** Nothing where it does not answer in time, or is not there. */
  readonly reach: Reach | undefined
}

/** Resolve to whether the store answers; a rejection is a no. */
export interface StoreChecks {
  postgres(): Promise<boolean>
  /** Absent where no Redis is configured. */
  redis: (() => Promise<boolean>) | undefined
}

interface Parts extends StoreChecks {
  /** Where workers serve: every one of them, those that are not there too. */
  workers?: (() => Promise<WorkerHealth[]>) | undefined
  /** Of the configuration in force. */
  warnings(): readonly string[]
  /** Whether the last reload was taken. */
  isLastReloadGood(): boolean
}

export function createHealth({ workers, warnings, isLastReloadGood, ...stores }: Parts): Health {
  return {
    async ofGuards() {
      const [own, crew] = await Promise.all([reachOf(stores), workers?.()])
      const checks = { ...checksOf(own, crew), ...(crew === undefined ? {} : { workers: markOf(crew) }) }
      const said = [...warnings(), ...(crew ?? []).flatMap(complaintOf)]
      return {
        status: statusOf(checks),
        checks,
        ...(isLastReloadGood() ? {} : { configuration: 'refused' }),
        ...(said.length === 0 ? {} : { warnings: said }),
      }
    },
    async ofPublicRoutes() {
      const crew = await workers?.()
      if (crew === undefined) return { status: 'ok', checks: {} }
      const checks = { workers: markOf(crew) }
      return { status: statusOf(checks), checks }
    },
  }
}

/** Never rejects. */
export async function reachOf({ postgres, redis }: StoreChecks): Promise<Reach> {
  const [record, count] = await Promise.all([answers(postgres), redis && answers(redis)])
  return { postgres: record, ...(count === undefined ? {} : { redis: count }) }
}

function answers(check: () => Promise<boolean>): Promise<boolean> {
  return check().catch(() => false)
}

/** A store that some of the workers do not reach is half there. */
function checksOf(own: Reach, crew: readonly WorkerHealth[] = []): Record<string, Mark> {
  const reaches = crew.flatMap(({ reach }) => reach ?? [])
  const mark = (name: 'postgres' | 'redis'): Mark => {
    if (!own[name]) return 'down'
    const reaching = reaches.filter(reach => reach[name]).length
    if (reaching === reaches.length) return 'ok'
    return reaching === 0 ? 'down' : 'degraded'
  }
  return { postgres: mark('postgres'), ...(own.redis === undefined ? {} : { redis: mark('redis') }) }
}

function markOf(crew: readonly WorkerHealth[]): Mark {
  const up = crew.filter(({ reach }) => reach !== undefined).length
  if (up === crew.length) return 'ok'
  return up === 0 ? 'down' : 'degraded'
}

function statusOf({ redis, ...needed }: Record<string, Mark>): Mark {
  const marks = Object.values(needed)
  if (marks.includes('down')) return 'down'
  return marks.includes('degraded') || (redis ?? 'ok') !== 'ok' ? 'degraded' : 'ok'
}

function complaintOf({ pid, reach }: WorkerHealth): string[] {
  if (pid === undefined) return ['a worker has ended and is not replaced yet']
  if (reach === undefined) return [`worker ${pid} does not answer`]
  const missed = (['postgres', 'redis'] as const).filter(name => reach[name] === false)
  return missed.map(name => `worker ${pid} does not reach ${name}`)
}
