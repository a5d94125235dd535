// Defines the gauges: the state of storage and of the running gateway at the time of a scrape.
import { byLabel, type Family, gauge, unlabeledSample } from './families.ts'

export interface PoolState {
  /** Open connections, including idle connections. */
  readonly total: number
  readonly idle: number
  /** The number of statements that wait for a connection. */
  readonly waiting: number
  /** The maximum number of connections (`storage.pool`). */
  readonly max: number
}

/** A member is undefined if the store is not configured. */
export interface StorageGauges {
  readonly postgresPool: (() => PoolState) | undefined
  readonly isRedisUp: (() => boolean) | undefined
}

interface GatewayGauges {
  /** Returns one entry per endpoint. `target` is `Endpoint.name`. `isHealthy` shows whether it receives requests. */
  targets(): readonly TargetState[]
  /** Returns the number of open WebSockets and event streams, by kind. */
  openStreams(): Readonly<Record<'web_socket' | 'event_stream', number>>
  pendingRevocations(): number
  isChangeFeedFresh(): boolean
}

interface TargetState {
  readonly upstream: string
  readonly target: string
  readonly isHealthy: boolean
}

export interface Gauges {
  /**
   * Includes the values of this gateway in the gauges until the returned function is called. Several gateways can be
   * registered, because a previous gateway may still have open streams.
   */
  register(gateway: GatewayGauges): () => void
  readonly families: readonly Family[]
}

export function createGauges({ postgresPool, isRedisUp }: StorageGauges): Gauges {
  /** The newest gateway is last. */
  const gateways = new Set<GatewayGauges>()
  const newest = () => [...gateways].at(-1)
  const sum = (of: (gateway: GatewayGauges) => number) => [...gateways].reduce((all, one) => all + of(one), 0)
  const streams = (kind: 'web_socket' | 'event_stream') => sum(gateway => gateway.openStreams()[kind])
  return {
    register(gateway) {
      gateways.add(gateway)
      return () => gateways.delete(gateway)
    },
    families: [
      gauge(
        'peage_upstream_healthy',
        '1 if the target receives requests, 0 if its health checks fail, its circuit is open, or it did not respond.',
        'min',
        () =>
          uniqueTargets(newest()?.targets() ?? []).map(({ upstream, target, isHealthy }) => ({
            labels: { upstream, target },
            value: isHealthy ? 1 : 0,
          })),
      ),
      gauge('peage_open_streams', 'Open WebSockets and event streams.', 'sum', () =>
        byLabel('kind', { web_socket: streams('web_socket'), event_stream: streams('event_stream') }),
      ),
      gauge('peage_pending_logouts', 'Logouts kept in memory until they are stored in Postgres.', 'sum', () =>
        unlabeledSample(sum(gateway => gateway.pendingRevocations())),
      ),
      gauge(
        'peage_change_feed_trusted',
        '1 if the change feed works, 0 if users and keys are read from Postgres for every request.',
        'min',
        // A primary with workers has no change feed, so only its workers report this gauge.
        () =>
          [...gateways].slice(-1).flatMap(gateway => unlabeledSample(gateway.isChangeFeedFresh() ? 1 : 0)),
      ),
      ...(isRedisUp === undefined
        ? []
        : [
            gauge('peage_redis_up', '1 if Redis responds, otherwise 0.', 'min', () =>
              unlabeledSample(isRedisUp() ? 1 : 0),
            ),
          ]),
      ...(postgresPool === undefined ? [] : poolGauges(postgresPool)),
    ],
  }
}

function poolGauges(state: () => PoolState): Family[] {
  const ofPool = (member: keyof PoolState, name: string, help: string) =>
    gauge(`peage_postgres_pool_${name}`, help, 'sum', () => unlabeledSample(state()[member]))
  return [
    ofPool('total', 'connections', 'Open connections of the pool.'),
    ofPool('idle', 'idle_connections', 'Open connections that are not in use.'),
    ofPool('waiting', 'waiting_requests', 'Statements that wait for a connection.'),
    ofPool('max', 'max_connections', 'Maximum number of open connections (storage.pool).'),
  ]
}

/**
 * Merges targets with the same name into one time series. If any of these targets is healthy, the series shows a
 * healthy target.
 */
function uniqueTargets(targets: readonly TargetState[]): TargetState[] {
  const byName = new Map<string, TargetState>()
  for (const state of targets) {
    const name = `${state.upstream} ${state.target}`
    if (!byName.get(name)?.isHealthy) byName.set(name, state)
  }
  return [...byName.values()]
}
