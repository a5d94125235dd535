// Defines an endpoint, which is one address of a target. It has connections and a health state.
import { isSameValue } from '../../config/same-value.ts'
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import type { EndAttempt } from '../failures.ts'
import { type CircuitBreaker, createCircuitBreaker } from './circuit-breaker.ts'
import { type ConnectionPool, openConnectionPool } from './connection-pool.ts'
import { createHealthCheck, type HealthCheck, type HealthState } from './health-check.ts'
import { createOutlierEjection, type OutlierEjection } from './outlier-ejection.ts'
import { hashText } from './rendezvous.ts'
import type { TargetAddress } from './target-address.ts'
import type { TargetStatus } from './target-status.ts'

export interface Endpoint {
  /** `scheme://host:port`, with the address in parentheses if the host is a name. */
  readonly name: string
  /** `scheme://host:port` of the target. */
  readonly origin: string
  /** `host:port`, as in the target's Host header. */
  readonly host: string
  /**
   * The name that is sent as SNI and expected in the certificate. Undefined for `http:`, and by default for an IP
   * address.
   */
  readonly serverName: string | undefined
  /** The hash of `name`. It splits users among the addresses of the target. */
  readonly hash: number
  readonly pool: ConnectionPool
  /** Returns false while the health checks fail or the circuit is open. The endpoint then receives no requests. */
  isAvailable(): boolean
  /**
   * Returns whether the address was found after the start and its first health check has not ended yet. While the
   * circuit is open, returns false.
   */
  isUnchecked(): boolean
  state(): Pick<TargetStatus, 'checks' | 'problem' | 'circuit'>
  readonly ejection: OutlierEjection
  /** Call this when a request is sent to the endpoint. */
  beginAttempt(): EndAttempt
}

export interface OpenEndpoint extends Endpoint {
  /** Applies the settings of a new configuration. The connections and the health state stay. */
  configure(config: UpstreamConfig): void
  /** Stops the health checks. Requests that are sent later use the last health state. */
  stopChecks(): void
  /** Call this when the target no longer has this address. Busy connections close after their current response. */
  retire(): Promise<void>
  /** Closes the connections, even with requests in flight. */
  close(): Promise<void>
}

interface Options {
  target: TargetAddress
  /**
   * The IP address of the endpoint. Undefined if the target's URL contains an IP address, or if each connection looks
   * the name up.
   */
  address: string | undefined
  config: UpstreamConfig
  /** `passing` if the address is known when the gateway starts; `unchecked` if the address is found later. */
  initialHealth: HealthState
}

export function openEndpoint({ target, address, config, initialHealth }: Options): OpenEndpoint {
  const { origin, host, serverName, tls } = target
  const name = address === undefined ? origin : `${origin} (${address})`
  const dial = { origin, address, tls, serverName }
  const pool = openConnectionPool(dial, config)
  let applied: {
    checks?: UpstreamConfig['health'] | undefined
    circuit_breaker?: UpstreamConfig['circuit_breaker'] | undefined
  } = {}
  let health: HealthCheck | undefined
  let circuit: CircuitBreaker | undefined
  const ejection = createOutlierEjection(() => health !== undefined)

  function configure({ health: checks, circuit_breaker }: UpstreamConfig): void {
    if (!isSameValue(checks, applied.checks)) {
      const before = health?.state() ?? initialHealth
      health?.stop()
      health =
        checks && createHealthCheck({ dial, ...checks, initialState: before, random: Math.random, ejection })
    }
    if (!isSameValue(circuit_breaker, applied.circuit_breaker)) {
      circuit = circuit_breaker && createCircuitBreaker(circuit_breaker)
    }
    applied = { checks, circuit_breaker }
  }
  configure(config)

  return {
    name,
    origin,
    host,
    serverName,
    hash: hashText(name),
    pool,
    isAvailable: () => (health === undefined || health.state() === 'passing') && circuit?.allows() !== false,
    isUnchecked: () => health?.state() === 'unchecked' && circuit?.allows() !== false,
    state: () => ({
      checks: health === undefined ? null : health.state() === 'passing' ? 'passing' : 'failing',
      problem: health?.problem() ?? null,
      circuit: circuit?.state() ?? null,
    }),
    ejection,
    beginAttempt() {
      const endForEjection = ejection.beginAttempt()
      if (circuit === undefined) return endForEjection
      const endForCircuit = circuit.beginAttempt()
      return result => {
        endForEjection(result)
        endForCircuit(result)
      }
    },
    configure(config) {
      pool.configure(config)
      configure(config)
    },
    stopChecks: () => health?.stop(),
    retire() {
      health?.stop()
      return pool.retire()
    },
    async close() {
      health?.stop()
      await pool.close()
    },
  }
}
