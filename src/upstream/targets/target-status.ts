// How a target stands, for operators: whether it is sent requests, and why not.

export interface TargetStatus {
  readonly upstream: string
  /** `scheme://host:port`. */
  readonly target: string
  /** Whether it is among those that requests go to. */
  readonly isHealthy: boolean
  /** Of its health checks; `null` where there are none. */
  readonly checks: 'passing' | 'failing' | null
  /** Of its circuit breaker; `null` where there is none. */
  readonly circuit: CircuitState | null
  /** Whether other targets are preferred, since it could not be connected to. */
  readonly isEjected: boolean
}

export type CircuitState = 'closed' | 'half_open' | 'open'

/** What several processes see of the same targets, as the one sees it that is the worst off. */
export function worstOf(processes: readonly (readonly TargetStatus[])[]): TargetStatus[] {
  const worst = new Map<string, TargetStatus>()
  for (const status of processes.flat()) {
    const key = `${status.upstream} ${status.target}`
    const worstSoFar = worst.get(key) ?? status
    worst.set(key, {
      ...status,
      isHealthy: status.isHealthy && worstSoFar.isHealthy,
      checks: worstSoFar.checks === 'failing' ? 'failing' : status.checks,
      circuit: worseCircuit(worstSoFar.circuit, status.circuit),
      isEjected: status.isEjected || worstSoFar.isEjected,
    })
  }
  return [...worst.values()]
}

const circuits: readonly (CircuitState | null)[] = [null, 'closed', 'half_open', 'open']

function worseCircuit(one: CircuitState | null, other: CircuitState | null): CircuitState | null {
  return circuits.indexOf(one) > circuits.indexOf(other) ? one : other
}
