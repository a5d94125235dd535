// Picks the endpoint of a request: first a target by weight, then one of its endpoints.
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import type { ClientKey } from '../../identity/client-key.ts'
import type { Endpoint } from './endpoint.ts'
import { score } from './rendezvous.ts'
import type { Target } from './target.ts'
import { createWeightedRoundRobin } from './weighted-round-robin.ts'

/**
 * Picks an endpoint. If every endpoint is unavailable, picks an unavailable endpoint. This is rare, because the guards
 * refuse the request earlier in this case. They check the availability before the use is counted, so that a refusal
 * costs no use.
 * @param key the hash of the user, who keeps the same endpoint while it is available; undefined to take turns
 * @param tried the endpoints on which this request has failed; they are avoided if possible
 * @param client endpoints where this client may take one more connection are preferred
 * @returns undefined if no target with a weight has an address
 */
export type PickEndpoint = (
  key: number | undefined,
  tried: readonly Endpoint[],
  client: ClientKey,
) => Endpoint | undefined

export interface WeightedTarget {
  readonly target: Target
  /** A target with weight 0 receives no requests. */
  readonly weight: number
}

/** Returns the weights in the order of the configuration. If a URL is listed twice, its weights are added. */
export function weightsByUrl({ targets }: Pick<UpstreamConfig, 'targets'>): Map<string, number> {
  const weights = new Map<string, number>()
  for (const { url, weight } of targets) weights.set(url, (weights.get(url) ?? 0) + weight)
  return weights
}

/**
 * The conditions for an endpoint, from the strictest to the last resort. If no endpoint meets a condition, the next
 * condition is used.
 */
const preferences: readonly ((
  endpoint: Endpoint,
  tried: readonly Endpoint[],
  client: ClientKey,
) => boolean)[] = [
  (endpoint, tried, client) =>
    endpoint.isAvailable() &&
    !endpoint.ejection.isEjected() &&
    endpoint.pool.hasFree() &&
    endpoint.pool.admits(client) &&
    !tried.includes(endpoint),
  (endpoint, tried, client) =>
    endpoint.isAvailable() && endpoint.pool.admits(client) && !tried.includes(endpoint),
  (endpoint, tried) => endpoint.isAvailable() && !tried.includes(endpoint),
  endpoint => endpoint.isAvailable(),
  (endpoint, tried) => endpoint.isUnchecked() && !tried.includes(endpoint),
  endpoint => endpoint.isUnchecked(),
  () => true,
]

export function createLoadBalancer(targets: readonly WeightedTarget[]): PickEndpoint {
  const used = targets.filter(({ weight }) => weight > 0)
  const only = used.length === 1 ? used[0]?.target : undefined
  const weights = targets.map(({ weight }) => weight)
  const firstTries = createWeightedRoundRobin(weights)
  // Retries take turns in a separate sequence, so that the shares of first attempts match the weights exactly.
  const retries = createWeightedRoundRobin(weights)
  /** For each target, the index of the endpoint whose turn is next. */
  const next = targets.map(() => 0)

  function byKey(key: number, fits: (endpoint: Endpoint) => boolean): Endpoint | undefined {
    const candidates = used.filter(({ target }) => target.endpoints().some(fits))
    const chosen = best(candidates, ({ target, weight }) => score(key, target.hash, weight))
    return chosen && best(chosen.target.endpoints().filter(fits), endpoint => score(key, endpoint.hash, 1))
  }

  function byTurn(isRetry: boolean, fits: (endpoint: Endpoint) => boolean): Endpoint | undefined {
    const index = (isRetry ? retries : firstTries).next(
      candidate => targets[candidate]?.target.endpoints().some(fits) === true,
    )
    if (index === undefined) return undefined
    const endpoints = targets[index]?.target.endpoints() ?? []
    const start = next[index] ?? 0
    for (let step = 0; step < endpoints.length; step += 1) {
      const position = (start + step) % endpoints.length
      const endpoint = endpoints[position]
      if (endpoint === undefined || !fits(endpoint)) continue
      next[index] = position + 1
      return endpoint
    }
    return undefined
  }

  return (key, tried, client) => {
    const endpoints = only?.endpoints()
    if (endpoints?.length === 1) return endpoints[0]
    for (const preference of preferences) {
      const fits = (endpoint: Endpoint) => preference(endpoint, tried, client)
      const picked = key === undefined ? byTurn(tried.length > 0, fits) : byKey(key, fits)
      if (picked !== undefined) return picked
    }
    return undefined
  }
}

function best<T>(items: readonly T[], scoreOf: (item: T) => number): T | undefined {
  let chosen: T | undefined
  let highest = Number.NEGATIVE_INFINITY
  for (const item of items) {
    const scored = scoreOf(item)
    if (scored <= highest) continue
    chosen = item
    highest = scored
  }
  return chosen
}
