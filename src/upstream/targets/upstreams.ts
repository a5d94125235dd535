// The upstream services, each with its targets.

import { maxFileBytes, readLimited } from '../../config/read-file.ts'
import type { UpstreamConfig } from '../../config/schema/schema.ts'
import type { Histogram } from '../../observability/metrics/histogram.ts'
import { createLoadBalancer, type PickTarget } from './load-balancer.ts'
import { openTarget, type Target } from './target.ts'
import type { TargetStatus } from './target-status.ts'

export interface Upstream {
  readonly targets: readonly Target[]
  /** How often a request is sent again, if that does no harm. */
  readonly retries: number
  /** Milliseconds: until the response head, and between two chunks of its body. */
  readonly timeouts: { readonly response: number; readonly idle: number }
  /** Whether a request may be sent to any target. */
  isAvailable(): boolean
  /** Of each attempt, from dispatch to the response head or the failure. */
  readonly durations: Histogram
  readonly pickTarget: PickTarget
}

interface OpenUpstream {
  readonly value: Upstream
  /** Stops the health checks: no configuration in use contains this upstream. */
  quiesce(): void
  /** Closes the connections: no request uses this upstream any more. */
  close(): Promise<void>
}

/** Returns the upstream open under this name, or opens it. @param name includes everything it is built from */
type ReuseUpstream = (name: string, open: () => OpenUpstream) => Upstream

export interface Upstreams {
  get(name: string): Upstream
  targetStatus(): TargetStatus[]
}

/**
 * @param durationsOf the histogram of an upstream's response times, by its name
 * @param reuse returns unchanged upstreams as they are, with their connections and state
 * @throws CertificateAuthorityError if `tls.ca` cannot be read
 */
export function createUpstreams(
  configs: Readonly<Record<string, UpstreamConfig>>,
  durationsOf: (name: string) => Histogram,
  reuse: ReuseUpstream,
): Upstreams {
  // Reads all files before opening anything that would have to be closed again.
  const authorities = new Map(
    Object.entries(configs).map(([name, config]) => [name, readAuthority(name, config)]),
  )
  const upstreams = new Map(
    Object.entries(configs).map(([name, config]) => {
      const ca = authorities.get(name)
      const openThis = () => openUpstream(config, ca, durationsOf(name))
      return [name, reuse(`upstream ${JSON.stringify([name, config, ca])}`, openThis)]
    }),
  )
  return {
    get(name) {
      const upstream = upstreams.get(name)
      if (upstream === undefined) throw new Error(`upstream ${name} was not checked`)
      return upstream
    },
    targetStatus: () =>
      [...upstreams].flatMap(([upstream, { targets }]) =>
        targets.map(({ origin, isAvailable, ejection, state }) => {
          const isEjected = ejection?.isEjected() === true
          return { upstream, target: origin, isHealthy: isAvailable() && !isEjected, isEjected, ...state() }
        }),
      ),
  }
}

/** The file was readable when the configuration was validated. */
class CertificateAuthorityError extends Error {
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

function openUpstream(config: UpstreamConfig, ca: string | undefined, durations: Histogram): OpenUpstream {
  const hasAlternatives = config.targets.length > 1
  const targets = config.targets.map(origin => openTarget({ origin, config, ca, hasAlternatives }))
  const isWatched = config.health !== undefined || config.circuit_breaker !== undefined
  return {
    value: {
      targets,
      retries: config.retries,
      timeouts: config.timeouts,
      durations,
      isAvailable: isWatched ? () => targets.some(target => target.isAvailable()) : () => true,
      pickTarget: createLoadBalancer(targets),
    },
    quiesce() {
      for (const target of targets) target.stopChecks()
    },
    async close() {
      await Promise.all(targets.map(target => target.close()))
    },
  }
}
