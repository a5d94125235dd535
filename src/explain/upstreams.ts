// Stub upstreams: a callback receives what would be sent to a target.
import type { Dispatcher } from 'undici'
import type { UpstreamConfig } from '../config/schema/schema.ts'
import { createHistogram } from '../observability/metrics/histogram.ts'
import type { Target } from '../upstream/targets/target.ts'
import type { Upstream, Upstreams } from '../upstream/targets/upstreams.ts'

/** The request that a target would receive, and the handler that waits for its response. */
export interface Dispatched {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Names and values alternating. */
  readonly fields: readonly string[]
  readonly handler: Dispatcher.DispatchHandler
}

/** All targets are available. @param onDispatch called instead of the network */
export function createStubUpstreams(
  configs: Readonly<Record<string, UpstreamConfig>>,
  onDispatch: (dispatched: Dispatched) => void,
): Pick<Upstreams, 'get'> {
  return {
    get(name) {
      const config = configs[name]
      if (config === undefined) throw new Error(`upstream ${name} was not checked`)
      return createStubUpstream(config, onDispatch)
    },
  }
}

function createStubUpstream(config: UpstreamConfig, onDispatch: (dispatched: Dispatched) => void): Upstream {
  const targets = config.targets.map((origin): Target => {
    const dispatch = ({ path, headers }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) => {
      onDispatch({ origin, path, fields: headers as string[], handler })
    }
    const connection = { dispatch, release: () => {} }
    return {
      origin,
      host: new URL(origin).host,
      serverName: undefined,
      pool: {
        hasFree: () => true,
        tryAcquire: () => connection,
        acquire: async () => connection,
        close: async () => {},
      },
      isAvailable: () => true,
      ejection: undefined,
      beginAttempt: undefined,
      state: () => ({ checks: null, circuit: null }),
      stopChecks: () => {},
      close: async () => {},
    }
  })
  return {
    targets,
    retries: 0,
    timeouts: config.timeouts,
    durations: createHistogram(),
    isAvailable: () => true,
    // Always the first target, so that an explanation does not change from one call to the next.
    pickTarget: () => targets[0] as Target,
  }
}
