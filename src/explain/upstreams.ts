// Upstreams that nothing is sent to: what would go to one of their targets is shown to whoever asks.
import type { Dispatcher, Pool } from 'undici'
import type { UpstreamConfig } from '../config/schema.ts'
import { createDurations } from '../metrics/durations.ts'
import { createChoice } from '../upstream/choice.ts'
import { createSlots } from '../upstream/slots.ts'
import type { Target } from '../upstream/target.ts'
import type { Upstream, Upstreams } from '../upstream/upstreams.ts'

/** What a target would be sent, and who waits for its answer. */
export interface Dispatched {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Names and values in turn. */
  readonly fields: readonly string[]
  readonly handler: Dispatcher.DispatchHandler
}

/** All are well. @param onDispatch told instead of a network */
export function standInUpstreams(
  configs: Readonly<Record<string, UpstreamConfig>>,
  onDispatch: (dispatched: Dispatched) => void,
): Pick<Upstreams, 'get'> {
  return {
    get(name) {
      const config = configs[name]
      if (config === undefined) throw new Error(`upstream ${name} was not checked`)
      return standIn(config, onDispatch)
    },
  }
}

function standIn(config: UpstreamConfig, onDispatch: (dispatched: Dispatched) => void): Upstream {
  const targets = config.targets.map((origin): Target => {
    const dispatch = ({ path, headers }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) => {
      onDispatch({ origin, path, fields: headers as string[], handler })
      return true
    }
    return {
      origin,
      host: new URL(origin).host,
      serverName: undefined,
      pool: { dispatch } as unknown as Pool,
      slots: createSlots(1, 0),
      isAvailable: () => true,
      ejection: undefined,
      begin: undefined,
      state: () => ({ checks: null, circuit: null }),
      rest: () => {},
      close: async () => {},
    }
  })
  return {
    targets,
    retries: 0,
    timeouts: config.timeouts,
    durations: createDurations(),
    isAvailable: () => true,
    choose: createChoice(targets),
  }
}
