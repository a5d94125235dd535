// Finds the routes of wildcard hosts such as `*.example.com`. A wildcard stands for one or more labels.
import { isHostName } from './addresses.ts'

const prefix = '*.'

/** Whether a host of a route is a wildcard. A host that a client sends is never one, even if it contains `*`. */
export function isWildcard(host: string): boolean {
  return host.startsWith(prefix)
}

/** Returns `example.com` for `*.example.com`, and an exact host unchanged. */
export function withoutWildcard(host: string): string {
  return isWildcard(host) ? host.slice(prefix.length) : host
}

/**
 * Whether a wildcard matches all hosts of another entry of `hosts`, and more. For example, `*.example.com` is wider than
 * `a.example.com` and than `*.b.example.com`.
 */
export function isWider(wildcard: string, host: string): boolean {
  return withoutWildcard(host).endsWith(wildcard.slice(1))
}

/** The routes of one path with wildcard hosts. A look-up does not depend on the number of wildcards. */
export class WildcardMap<Route> {
  readonly #routes = new Map<string, Route[]>()
  /** The number of labels in the longest wildcard. Limits the look-ups, because clients choose their number of labels. */
  #depth = 0

  add(wildcard: string, route: Route): void {
    const parent = withoutWildcard(wildcard)
    const routes = this.#routes.get(parent)
    if (routes === undefined) this.#routes.set(parent, [route])
    else routes.push(route)
    this.#depth = Math.max(this.#depth, parent.split('.').length)
  }

  /** Returns the routes of each wildcard that matches the host. The longest wildcard is last. */
  matching(host: string): Route[][] {
    const found: Route[][] = []
    let dot = host.length
    for (let labels = 0; labels < this.#depth; labels++) {
      dot = host.lastIndexOf('.', dot - 1)
      if (dot <= 0) break
      const routes = this.#routes.get(host.slice(dot + 1))
      if (routes !== undefined) found.push(routes)
    }
    // Hosts with an empty label or with characters such as `%` are valid in HTTP, but no `hosts` can contain them.
    return found.length > 0 && isHostName(host) ? found : []
  }
}
