// Defines a target of an upstream. It has one endpoint for each current address of its name.
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import { type Endpoint, type OpenEndpoint, openEndpoint } from './endpoint.ts'
import type { NameLookups } from './name-lookups.ts'
import { hashText } from './rendezvous.ts'
import type { TargetAddress } from './target-address.ts'

export interface Target {
  /** `scheme://host:port`. */
  readonly origin: string
  /** The hash of `origin`. It splits users among targets. */
  readonly hash: number
  /** The current endpoints; empty until the name has been resolved. */
  endpoints(): readonly Endpoint[]
}

export interface OpenTarget extends Target {
  /** Resolves when the first lookup of the name has ended, or immediately if no name is looked up. */
  readonly firstAnswer: Promise<void>
  /** Applies the settings of a new configuration. The connections and the health state stay. */
  configure(config: UpstreamConfig): void
  /** Stops health checks and lookups. Call this when no active configuration contains this target. */
  quiesce(): void
  /** Closes the connections. Call this when no request uses this target any more. */
  close(): Promise<void>
}

export interface TargetEvents {
  onLookup(problem: string | undefined): void
  onTooMany(count: number): void
}

/** The maximum time that a starting process, or a reload, waits until the first lookups of names have ended. */
export const resolveWaitMs = 2_000

interface Options {
  target: TargetAddress
  config: UpstreamConfig
  lookups: NameLookups
  events: TargetEvents
}

export function openTarget({ target, config: initial, lookups, events }: Options): OpenTarget {
  const { origin, lookUpName } = target
  let config = initial
  let endpoints: readonly OpenEndpoint[] = []
  const retired = new Set<OpenEndpoint>()
  /**
   * The time when the start ends, from `performance.now()`. An address that is found later counts as added after the
   * start.
   */
  let startedAtMs = performance.now() + resolveWaitMs
  const open = (address: string | undefined) => {
    const initialHealth = performance.now() < startedAtMs ? 'passing' : 'unchecked'
    return openEndpoint({ target, address, config, initialHealth })
  }
  const shared = { origin, hash: hashText(origin), endpoints: () => endpoints }
  if (lookUpName === undefined || config.resolve === false) {
    const endpoint = open(undefined)
    endpoints = [endpoint]
    return {
      ...shared,
      firstAnswer: Promise.resolve(),
      configure: endpoint.configure,
      quiesce: endpoint.stopChecks,
      close: endpoint.close,
    }
  }

  const byAddress = new Map<string, OpenEndpoint>()

  function take(addresses: readonly string[]): void {
    for (const [address, endpoint] of byAddress) {
      if (addresses.includes(address)) continue
      byAddress.delete(address)
      retired.add(endpoint)
      void endpoint.retire().then(() => retired.delete(endpoint))
    }
    for (const address of addresses) if (!byAddress.has(address)) byAddress.set(address, open(address))
    endpoints = addresses.flatMap(address => byAddress.get(address) ?? [])
  }

  const watch = lookups.watch(lookUpName, config.resolve, {
    onAddresses: take,
    onState: events.onLookup,
    onTooMany: events.onTooMany,
  })
  void watch.firstAnswer.then(() => {
    startedAtMs = 0
  })
  return {
    ...shared,
    firstAnswer: watch.firstAnswer,
    configure(next) {
      config = next
      if (next.resolve !== false) watch.configure(next.resolve)
      for (const endpoint of byAddress.values()) endpoint.configure(next)
    },
    quiesce() {
      watch.stop()
      for (const endpoint of byAddress.values()) endpoint.stopChecks()
    },
    async close() {
      watch.stop()
      await Promise.all([...byAddress.values(), ...retired].map(endpoint => endpoint.close()))
    },
  }
}
