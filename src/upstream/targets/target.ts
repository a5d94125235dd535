// One address of an upstream: its connections, and whether requests should go to it.
import { isIP } from 'node:net'
import type { UpstreamConfig } from '../../config/schema/schema.ts'
import type { EndAttempt } from '../failures.ts'
import { createCircuitBreaker } from './circuit-breaker.ts'
import { type ConnectionPool, openConnectionPool } from './connection-pool.ts'
import { createHealthCheck } from './health-check.ts'
import { createOutlierEjection, type OutlierEjection } from './outlier-ejection.ts'
import type { TargetStatus } from './target-status.ts'

export interface Target {
  /** `scheme://host:port`. */
  readonly origin: string
  /** `host:port`, as in the target's Host header. */
  readonly host: string
  /** Sent as SNI and expected in the certificate. Undefined for `http:`, and by default for an IP address. */
  readonly serverName: string | undefined
  readonly pool: ConnectionPool
  /** False while its health checks fail or its circuit is open: it then receives no requests. */
  isAvailable(): boolean
  /** The state of its health checks and circuit breaker, for operators. */
  state(): Pick<TargetStatus, 'checks' | 'circuit'>
  /** Undefined if there is no other target to prefer. */
  readonly ejection: OutlierEjection | undefined
  /** Called when a request is sent to the target; undefined if nothing uses the result. */
  readonly beginAttempt: (() => EndAttempt) | undefined
  /** Stops the health checks: requests still to be sent go by the last known state. */
  stopChecks(): void
  /** Closes the connections, even with requests in flight. */
  close(): Promise<void>
}

interface Options {
  origin: string
  config: UpstreamConfig
  /** The PEM text of `tls.ca`. */
  ca: string | undefined
  /** Whether the upstream has other targets. */
  hasAlternatives: boolean
}

export function openTarget({ origin, config, ca, hasAlternatives }: Options): Target {
  const url = new URL(origin)
  const tls = ca === undefined ? {} : { ca }
  const pool = openConnectionPool({
    origin: url.origin,
    maxConnections: config.connections,
    connectTimeoutMs: config.timeouts.connect,
    tls,
    timeouts: config.timeouts,
  })
  const serverName = url.protocol === 'https:' ? serverNameOf(url, config) : undefined
  const ejection = hasAlternatives ? createOutlierEjection(config.health !== undefined) : undefined
  const circuit = config.circuit_breaker && createCircuitBreaker(config.circuit_breaker)
  const health =
    config.health &&
    createHealthCheck({
      url,
      tls: { ...tls, servername: serverName },
      ...config.health,
      random: Math.random,
      ejection,
    })
  return {
    origin: url.origin,
    host: url.host,
    serverName,
    pool,
    isAvailable: () => health?.isPassing() !== false && circuit?.allows() !== false,
    state: () => ({
      checks: health === undefined ? null : health.isPassing() ? 'passing' : 'failing',
      circuit: circuit?.state() ?? null,
    }),
    ejection,
    beginAttempt: composeBeginAttempt(ejection, circuit),
    stopChecks: () => health?.stop(),
    async close() {
      health?.stop()
      await pool.close()
    },
  }
}

/** SNI carries names only (RFC 6066 §3): an IP address is verified in the certificate without being sent. */
function serverNameOf({ hostname }: URL, { tls }: UpstreamConfig): string | undefined {
  return tls?.server_name ?? (isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : undefined)
}

function composeBeginAttempt(
  ejection: OutlierEjection | undefined,
  circuit: ReturnType<typeof createCircuitBreaker> | undefined,
): (() => EndAttempt) | undefined {
  if (ejection === undefined || circuit === undefined) return (ejection ?? circuit)?.beginAttempt
  return () => {
    const endForEjection = ejection.beginAttempt()
    const endForCircuit = circuit.beginAttempt()
    return result => {
      endForEjection(result)
      endForCircuit(result)
    }
  }
}
