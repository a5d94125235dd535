// The services behind: one connection pool each.
import { Pool } from 'undici'
import type { UpstreamConfig } from '../config/schema.ts'
import { createEventStreams, type EventStreams } from './event-streams.ts'
import { createSlots, type Slots } from './slots.ts'

export interface Upstream {
  readonly name: string
  /** `scheme://host:port`. */
  readonly origin: string
  /** `host:port`, as the upstream's Host field has it. */
  readonly host: string
  readonly pool: Pool
  /** As many as the pool has connections: what is dispatched is never queued. */
  readonly slots: Slots
  /** Milliseconds: to connect, to the answer's head, between two chunks of its body. */
  readonly timeouts: { readonly connect: number; readonly response: number; readonly idle: number }
}

export interface Upstreams {
  get(name: string): Upstream
  readonly eventStreams: EventStreams
  /** Closes the connections, whatever is in flight. */
  close(): Promise<void>
}

export function createUpstreams(configs: Readonly<Record<string, UpstreamConfig>>): Upstreams {
  const upstreams = new Map(Object.entries(configs).map(([name, config]) => [name, open(name, config)]))
  return {
    eventStreams: createEventStreams(),
    get(name) {
      const upstream = upstreams.get(name)
      if (upstream === undefined) throw new Error(`upstream ${name} was not checked`)
      return upstream
    },
    async close() {
      await Promise.all([...upstreams.values()].map(upstream => upstream.pool.destroy()))
    },
  }
}

function open(name: string, config: UpstreamConfig): Upstream {
  const url = new URL(config.targets[0] as string)
  const pool = new Pool(url.origin, {
    connections: config.connections,
    // One request a connection: an answer that an upstream frames badly must not become another client's.
    pipelining: 1,
    connect: { timeout: config.timeouts.connect },
    headersTimeout: config.timeouts.response,
    bodyTimeout: config.timeouts.idle,
  })
  const slots = createSlots(config.connections, config.timeouts.connect)
  return { name, origin: url.origin, host: url.host, pool, slots, timeouts: config.timeouts }
}
