// A configuration serialized in small parts: sent between processes without one long deserialization.
import { deserialize, serialize } from 'node:v8'
import { mapSteps, type Steps } from '../../async/steps.ts'
import type { Config, RouteConfig } from '../sections/schema.ts'

export interface PackedConfig {
  /** All but the routes. */
  readonly rest: Uint8Array
  /** Batches of routes, in order. */
  readonly routes: readonly Uint8Array[]
}

/** Small enough to be deserialized between two requests. */
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
