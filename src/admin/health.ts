// Whether this process can do its work (CONTRACT §7, `/readyz`).

export interface HealthReport {
  readonly status: 'ok' | 'degraded' | 'down'
  readonly checks: Readonly<Record<string, 'ok' | 'down'>>
  /** What works, but not as it should in production. */
  readonly warnings?: readonly string[]
}

export interface Health {
  /** Whether a guard could decide. Redis lost is `degraded`: Postgres alone is the record. */
  ofGuards(): Promise<HealthReport>
  /** Whether unguarded routes can be served: they need nothing but the process. */
  ofPublicRoutes(): HealthReport
}

interface Parts {
  /** Resolve to whether the store answers; a rejection is a no. */
  postgres(): Promise<boolean>
  /** Absent where no Redis is configured. */
  redis: (() => Promise<boolean>) | undefined
  warnings: readonly string[]
}

export function createHealth({ postgres, redis, warnings }: Parts): Health {
  return {
    async ofGuards() {
      const [record, count] = await Promise.all([
        answers(postgres),
        redis === undefined ? undefined : answers(redis),
      ])
      const checks = { postgres: record, ...(count === undefined ? {} : { redis: count }) }
      const status = record === 'down' ? 'down' : count === 'down' ? 'degraded' : 'ok'
      return { status, checks, ...(warnings.length === 0 ? {} : { warnings }) }
    },
    ofPublicRoutes: () => ({ status: 'ok', checks: {} }),
  }
}

async function answers(check: () => Promise<boolean>): Promise<'ok' | 'down'> {
  try {
    return (await check()) ? 'ok' : 'down'
  } catch {
    return 'down'
  }
}
