// Opens the upstream services with their targets.
import { maxFileBytes, readLimited } from '../../config/read-file.ts'
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import type { ClientKey } from '../../identity/client-key.ts'
import type { Histogram } from '../../observability/metrics/histogram.ts'
import type { ConnectionLimit } from '../../refusals/limits.ts'
import { connectionLimitOf } from './connection-pool.ts'
import type { Endpoint } from './endpoint.ts'
import { createLoadBalancer, type PickEndpoint, type WeightedTarget, weightsByUrl } from './load-balancer.ts'
import type { NameLookups } from './name-lookups.ts'
import { type OpenTarget, openTarget, resolveWaitMs, type Target, type TargetEvents } from './target.ts'
import { targetAddress } from './target-address.ts'
import type { TargetStatus } from './target-status.ts'

export interface Upstream {
  /**
   * Returns whether the upstream has several endpoints, so that a request that failed on one can be sent to another.
   */
  hasAlternatives(): boolean
  /** How many times a request may be sent again, if that is safe. */
  readonly retries: number
  /** The maximum time in milliseconds until the response head, and between two chunks of the body. */
  readonly timeouts: { readonly response: number; readonly idle: number }
  /** Whether a user always goes to the same endpoint, while it is available. */
  readonly splitsByUser: boolean
  /** Returns whether a request may be sent to any target. */
  isAvailable(): boolean
  /**
   * The maximum number of connections that a client may have to an endpoint, with the configuration key of this limit.
   */
  readonly connectionLimit: ConnectionLimit
  /** Returns an endpoint where the client may take one more connection, if there is one. */
  endpointFor(client: ClientKey): Endpoint | undefined
  /** Returns whether a request sent now gets a connection without a wait. */
  hasFreeConnection(): boolean
  /** The durations of attempts. A duration begins with the dispatch and ends with the response head or the failure. */
  readonly durations: Histogram
  readonly pickEndpoint: PickEndpoint
}

/** @param name identifies a target; it contains every setting on which the connections of the target depend */
export type ReuseTarget = (name: string, open: () => OpenTarget) => OpenTarget

export interface Upstreams {
  get(name: string): Upstream
  targetStatus(): TargetStatus[]
  /** Resolves when every name has been looked up once, or after 2 s. */
  whenResolved(): Promise<void>
  /** Applies this configuration to the targets that an earlier configuration opened. */
  activate(): void
}

interface Dependencies {
  lookups: NameLookups
  durationsOf(name: string): Histogram
  /** Reuses targets that are already open, with their connections and health. */
  reuse: ReuseTarget
  /** @param name the name of the upstream */
  eventsOf(name: string, origin: string): TargetEvents
}

/** @throws CertificateAuthorityError if `tls.ca` cannot be read */
export function createUpstreams(
  configs: Readonly<Record<string, UpstreamConfig>>,
  dependencies: Dependencies,
): Upstreams {
  // All files are read before the first target is opened. So an unreadable file does not leave open targets behind.
  const authorities = new Map(
    Object.entries(configs).map(([name, config]) => [name, readAuthority(name, config)]),
  )
  const upstreams = new Map(
    Object.entries(configs).map(([name, config]) => {
      const targets = openTargets(name, config, authorities.get(name), dependencies)
      return [
        name,
        { config, targets, value: createUpstream(name, config, targets, dependencies.durationsOf(name)) },
      ]
    }),
  )
  const every = [...upstreams].flatMap(([upstream, { config, targets, value }]) =>
    targets.map(({ target }) => ({ upstream, config, target, value })),
  )
  return {
    get(name) {
      const upstream = upstreams.get(name)
      if (upstream === undefined)
        throw new Error(`unknown upstream ${name}; the configuration check should have refused it`)
      return upstream.value
    },
    targetStatus: () => every.flatMap(({ upstream, target, value }) => statusOf(upstream, target, value)),
    async whenResolved() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>(resolve => {
        timer = setTimeout(resolve, resolveWaitMs)
      })
      await Promise.race([late, Promise.all(every.map(({ target }) => target.firstAnswer))])
      clearTimeout(timer)
    },
    activate() {
      for (const { target, config } of every) target.configure(config)
    },
  }
}

/** The file of `tls.ca` cannot be read, although it was readable when the configuration was validated. */
export class CertificateAuthorityError extends Error {
  override readonly name = 'CertificateAuthorityError'
}

function readAuthority(name: string, { tls }: UpstreamConfig): string | undefined {
  if (tls?.ca === undefined) return undefined
  try {
    return readLimited(tls.ca, maxFileBytes, 0)
  } catch (error) {
    throw new CertificateAuthorityError(`upstreams.${name}.tls.ca: cannot read the file ${tls.ca}`, {
      cause: error,
    })
  }
}

interface OpenWeightedTarget extends WeightedTarget {
  readonly target: OpenTarget
}

function openTargets(
  name: string,
  config: UpstreamConfig,
  ca: string | undefined,
  { lookups, reuse, eventsOf }: Dependencies,
): OpenWeightedTarget[] {
  const { tls, resolve } = config
  return [...weightsByUrl(config)].map(([origin, weight]) => {
    const target = targetAddress(origin, { ca, serverName: tls?.server_name })
    const lookUp = target.lookUpName === undefined ? 'never' : resolve === false ? 'connect' : 'background'
    const key = [name, origin, tls, ca, lookUp]
    return {
      weight,
      target: reuse(JSON.stringify(key), () =>
        openTarget({ target, config, lookups, events: eventsOf(name, origin) }),
      ),
    }
  })
}

function createUpstream(
  name: string,
  config: UpstreamConfig,
  targets: readonly WeightedTarget[],
  durations: Histogram,
): Upstream {
  const used = targets.filter(({ weight }) => weight > 0).map(({ target }) => target)
  const isWatched = config.health !== undefined || config.circuit_breaker !== undefined
  // These functions run for every request, so they allocate nothing.
  const mayReceive = (endpoint: Endpoint) => !isWatched || endpoint.isAvailable() || endpoint.isUnchecked()
  const hasEndpoint = (target: Target) => target.endpoints().some(mayReceive)
  const hasConnection = (endpoint: Endpoint) => mayReceive(endpoint) && endpoint.pool.hasFree()
  return {
    connectionLimit: connectionLimitOf(name, config),
    endpointFor(client) {
      for (const target of used) {
        for (const endpoint of target.endpoints())
          if (mayReceive(endpoint) && endpoint.pool.admits(client)) return endpoint
      }
      return undefined
    },
    retries: config.retries,
    timeouts: config.timeouts,
    durations,
    splitsByUser: config.split_by === 'user',
    hasAlternatives: () => used.reduce((sum, target) => sum + target.endpoints().length, 0) > 1,
    isAvailable: () => used.some(hasEndpoint),
    hasFreeConnection: () => used.some(target => target.endpoints().some(hasConnection)),
    pickEndpoint: createLoadBalancer(targets),
  }
}

function statusOf(upstream: string, target: OpenTarget, { hasAlternatives }: Upstream): TargetStatus[] {
  const endpoints = target.endpoints()
  if (endpoints.length === 0) {
    const name = `${target.origin} (unresolved)`
    return [
      {
        upstream,
        target: name,
        isHealthy: false,
        isEjected: false,
        checks: null,
        problem: null,
        circuit: null,
      },
    ]
  }
  return endpoints.map(endpoint => {
    // Ejection only makes requests prefer other targets, so it has no effect without other targets.
    const isEjected = hasAlternatives() && endpoint.ejection.isEjected()
    const isHealthy = endpoint.isAvailable() && !isEjected
    return { upstream, target: endpoint.name, isHealthy, isEjected, ...endpoint.state() }
  })
}
