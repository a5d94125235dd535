// One address of an upstream: its connections, and whether requests should go to it.
import { isIP } from 'node:net'
import type { UpstreamConfig } from '../../config/schema/schema.ts'
import type { Try } from './attempt.ts'
import { createCircuit } from './circuit-breaker.ts'
import { type Connections, openConnections } from './connection-pool.ts'
import { createHealth } from './health-check.ts'
import { createEjection, type Ejection } from './outlier-ejection.ts'
import type { TargetStanding } from './target-status.ts'

export interface Target {
  /** `scheme://host:port`. */
  readonly origin: string
  /** `host:port`, as the target's Host field has it. */
  readonly host: string
  /** The name asked for and expected in its certificate; nothing for `http:`, nor for an IP address. */
  readonly serverName: string | undefined
  readonly connections: Connections
  /** False where its checks fail or its circuit is open: it is sent nothing then. */
  isAvailable(): boolean
  /** What its checks and its circuit say, for operators. */
  state(): Pick<TargetStanding, 'checks' | 'circuit'>
  /** What failed connections say of it; nothing where there is no other target to prefer. */
  readonly ejection: Ejection | undefined
  /** To be called as a request is sent to it; nothing where nobody asks how it went. */
  readonly begin: (() => Try) | undefined
  /** Checks it no more: whoever is on the way to it gets there by what is known now. */
  rest(): void
  /** Closes the connections, whatever is in flight. */
  close(): Promise<void>
}

interface Parts {
  origin: string
  config: UpstreamConfig
  /** The PEM text of `tls.ca`. */
  ca: string | undefined
  /** Whether other targets stand beside it. */
  isOneOfSeveral: boolean
}

export function openTarget({ origin, config, ca, isOneOfSeveral }: Parts): Target {
  const url = new URL(origin)
  const tls = ca === undefined ? {} : { ca }
  const connections = openConnections({
    origin: url.origin,
    most: config.connections,
    wait: config.timeouts.connect,
    tls,
    timeouts: config.timeouts,
  })
  const serverName = url.protocol === 'https:' ? serverNameOf(url, config) : undefined
  const ejection = isOneOfSeveral ? createEjection(config.health !== undefined) : undefined
  const circuit = config.circuit_breaker && createCircuit(config.circuit_breaker)
  const health =
    config.health &&
    createHealth({
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
    connections,
    isAvailable: () => health?.isGood() !== false && circuit?.allows() !== false,
    state: () => ({
      checks: health === undefined ? null : health.isGood() ? 'passing' : 'failing',
      circuit: circuit?.state() ?? null,
    }),
    ejection,
    begin: beginner(ejection, circuit),
    rest: () => health?.stop(),
    async close() {
      health?.stop()
      circuit?.close()
      await connections.close()
    },
  }
}

/** SNI holds names only (RFC 6066 §3): an IP address is looked for in the certificate without being asked for. */
function serverNameOf({ hostname }: URL, { tls }: UpstreamConfig): string | undefined {
  return tls?.server_name ?? (isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : undefined)
}

function beginner(
  ejection: Ejection | undefined,
  circuit: ReturnType<typeof createCircuit> | undefined,
): (() => Try) | undefined {
  if (ejection === undefined) return circuit?.begin
  if (circuit === undefined) {
    return () => {
      ejection.begin()
      return ejection.end
    }
  }
  return () => {
    ejection.begin()
    const end = circuit.begin()
    return verdict => {
      ejection.end(verdict)
      end(verdict)
    }
  }
}
