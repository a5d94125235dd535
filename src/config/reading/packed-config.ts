// A configuration as bytes in small parts: from thread to thread and from process to process without a long read at once.
import { deserialize, serialize } from 'node:v8'
import { mapSteps, type Steps } from '../../async/steps.ts'
import type { Config, RouteConfig } from '../schema/schema.ts'

export interface PackedConfig {
  /** All but the routes. */
  readonly rest: Uint8Array
  /** Some routes each, in order. */
  readonly routes: readonly Uint8Array[]
}

/** Small enough to be read between two requests. */
const routesInPart = 50

export function* packSteps({ routes, ...rest }: Config): Steps<PackedConfig> {
  const starts = Array.from({ length: Math.ceil(routes.length / routesInPart) }, (_, i) => i * routesInPart)
  return {
    rest: serialize(rest),
    routes: yield* mapSteps(starts, start => serialize(routes.slice(start, start + routesInPart))),
  }
}

export function* unpackSteps({ rest, routes }: PackedConfig): Steps<Config> {
  const parts = yield* mapSteps(routes, part => deserialize(part) as RouteConfig[])
  return { ...(deserialize(rest) as Omit<Config, 'routes'>), routes: parts.flat() }
}
