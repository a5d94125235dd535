// Creates stub upstreams for explained requests. Every target is available, and no connection is opened.
import type { Dispatcher } from 'undici'
import type { UpstreamConfig } from '../config/sections/schema.ts'
import { createHistogram } from '../observability/metrics/histogram.ts'
import { connectionLimitOf } from '../upstream/targets/connection-pool.ts'
import type { Endpoint } from '../upstream/targets/endpoint.ts'
import { createLoadBalancer, type PickEndpoint, weightsByUrl } from '../upstream/targets/load-balancer.ts'
import { hashText } from '../upstream/targets/rendezvous.ts'
import type { Upstream, Upstreams } from '../upstream/targets/upstreams.ts'

/** The request that a target would receive, and the handler that waits for its response. */
export interface Dispatched {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Alternating names and values. */
  readonly fields: readonly string[]
  readonly handler: Dispatcher.DispatchHandler
}

/** @param onDispatch the function that is called instead of sending the request to a target */
export function createStubUpstreams(
  configs: Readonly<Record<string, UpstreamConfig>>,
  onDispatch: (dispatched: Dispatched) => void,
): Pick<Upstreams, 'get'> {
  return {
    get(name) {
      const config = configs[name]
      if (config === undefined) throw new Error(`unknown upstream ${name}`)
      return createStubUpstream(name, config, onDispatch)
    },
  }
}

function createStubUpstream(
  name: string,
  config: UpstreamConfig,
  onDispatch: (dispatched: Dispatched) => void,
): Upstream {
  const targets = [...weightsByUrl(config)].map(([origin, weight]) => {
    const dispatch = ({ path, headers }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) => {
      onDispatch({ origin, path, fields: headers as string[], handler })
    }
    const connection = { dispatch, release: () => {} }
    const endpoint: Endpoint = {
      name: origin,
      origin,
      host: new URL(origin).host,
      serverName: undefined,
      hash: 0,
      pool: {
        hasFree: () => true,
        admits: () => true,
        reserve: () => {},
        cancel: () => {},
        tryAcquire: () => connection,
        acquire: async () => connection,
      },
      isAvailable: () => true,
      isUnchecked: () => false,
      ejection: { isEjected: () => false, beginAttempt: () => () => {}, readmit: () => {} },
      beginAttempt: () => () => {},
      state: () => ({ checks: null, problem: null, circuit: null }),
    }
    return { weight, endpoint, target: { origin, hash: hashText(origin), endpoints: () => [endpoint] } }
  })
  // Each request gets a new load balancer, because a new one always starts with the same target. So earlier requests
  // have no effect.
  const pickEndpoint: PickEndpoint = (...pick) => createLoadBalancer(targets)(...pick)
  return {
    connectionLimit: connectionLimitOf(name, config),
    endpointFor: () => targets.find(({ weight }) => weight > 0)?.endpoint,
    retries: 0,
    timeouts: config.timeouts,
    splitsByUser: config.split_by === 'user',
    durations: createHistogram(),
    hasAlternatives: () => false,
    isAvailable: () => targets.some(({ weight }) => weight > 0),
    hasFreeConnection: () => true,
    pickEndpoint,
  }
}
