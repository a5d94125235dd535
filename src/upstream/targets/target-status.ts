// How a target stands, for operators: whether it is sent requests, and why not.

export interface TargetStanding {
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
  readonly isAvoided: boolean
}

export type CircuitState = 'closed' | 'half_open' | 'open'

/** What several processes see of the same targets, as the one sees it that is the worst off. */
export function worstOf(processes: readonly (readonly TargetStanding[])[]): TargetStanding[] {
  const worst = new Map<string, TargetStanding>()
  for (const seen of processes.flat()) {
    const key = `${seen.upstream} ${seen.target}`
    const before = worst.get(key) ?? seen
    worst.set(key, {
      ...seen,
      isHealthy: seen.isHealthy && before.isHealthy,
      checks: before.checks === 'failing' ? 'failing' : seen.checks,
      circuit: worseCircuit(before.circuit, seen.circuit),
      isAvoided: seen.isAvoided || before.isAvoided,
    })
  }
  return [...worst.values()]
}

const circuits: readonly (CircuitState | null)[] = [null, 'closed', 'half_open', 'open']

function worseCircuit(one: CircuitState | null, other: CircuitState | null): CircuitState | null {
  return circuits.indexOf(one) > circuits.indexOf(other) ? one : other
}
