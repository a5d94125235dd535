// Defines the status of a target for operators: whether it receives requests, and if not, why.

export interface TargetStatus {
  readonly upstream: string
  /** `Endpoint.name`, or `scheme://host:port (unresolved)` if the name of the host has no address. */
  readonly target: string
  readonly isHealthy: boolean
  /** Result of the health checks; `null` if the target has none. */
  readonly checks: 'passing' | 'failing' | null
  /** Why the last health check failed; `null` if it passed or did not run. */
  readonly problem: string | null
  /** State of the circuit breaker; `null` if the target has none. */
  readonly circuit: CircuitState | null
  /** Whether outlier ejection currently sends requests to other targets. */
  readonly isEjected: boolean
}

export type CircuitState = 'closed' | 'half_open' | 'open'

/** Merges the reports of several processes. For each field of a target, the worst of the reported values is used. */
export function worstOf(processes: readonly (readonly TargetStatus[])[]): TargetStatus[] {
  const worst = new Map<string, TargetStatus>()
  for (const status of processes.flat()) {
    const key = `${status.upstream} ${status.target}`
    const worstSoFar = worst.get(key) ?? status
    worst.set(key, {
      ...status,
      isHealthy: status.isHealthy && worstSoFar.isHealthy,
      checks: worstSoFar.checks === 'failing' ? 'failing' : status.checks,
      problem: worstSoFar.problem ?? status.problem,
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
