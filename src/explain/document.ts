// An explanation as programs read it: on the command line with --json, and from the admin API (CONTRACT §1, §13).
import type { Explanation } from './explain.ts'

export function toDocument({ request, route, guards, refusal, upstream, headers }: Explanation) {
  const { method, path, as } = request
  return {
    request: { method, path, as },
    route,
    guards,
    status: refusal?.status ?? null,
    upstream: upstream && { name: upstream.name, url: upstream.url },
    headers,
  }
}
