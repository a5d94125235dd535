// Finds the routes whose wildcard matches a host. In a wildcard such as `*.example.com`, the `*` matches one or more
// labels.
import { isHostName } from './addresses.ts'

const prefix = '*.'

/** Whether a host of a route is a wildcard. The host of a request is never a wildcard, even if it contains `*`. */
export function isWildcard(host: string): boolean {
  return host.startsWith(prefix)
}

/** Returns `example.com` for `*.example.com`, and an exact host unchanged. */
export function withoutWildcard(host: string): string {
  return isWildcard(host) ? host.slice(prefix.length) : host
}

/**
 * Whether `wildcard` matches every host that `host` matches, and further hosts. For example, `*.example.com` is wider
 * than `a.example.com` and than `*.b.example.com`.
 */
export function isWider(wildcard: string, host: string): boolean {
  return withoutWildcard(host).endsWith(wildcard.slice(1))
}

/**
 * The routes of one path that have wildcards in `hosts`. The time of a look-up does not depend on the number of
 * wildcards.
 */
export class WildcardMap<Route> {
  readonly #routes = new Map<string, Route[]>()
  /**
   * The number of labels after `*.` in the longest wildcard. A look-up stops after this number of labels, because a
   * client can send a host with many labels.
   */
  #depth = 0

  add(wildcard: string, route: Route): void {
    const parent = withoutWildcard(wildcard)
    const routes = this.#routes.get(parent)
    if (routes === undefined) this.#routes.set(parent, [route])
    else routes.push(route)
    this.#depth = Math.max(this.#depth, parent.split('.').length)
  }

  /** Returns the routes of each wildcard that matches the host. The shortest wildcard is first, the longest is last. */
  matching(host: string): Route[][] {
    const found: Route[][] = []
    let dot = host.length
    for (let labels = 0; labels < this.#depth; labels++) {
      dot = host.lastIndexOf('.', dot - 1)
      if (dot <= 0) break
      const routes = this.#routes.get(host.slice(dot + 1))
      if (routes !== undefined) found.push(routes)
    }
    // A host with an empty label or with characters such as `%` is valid in HTTP, but not in `hosts`. So no wildcard
    // matches it.
    return found.length > 0 && isHostName(host) ? found : []
  }
}
