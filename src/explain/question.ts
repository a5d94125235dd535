// Builds an ExplainRequest from a test case or from the command line.
import type { TestCase } from '../config/test-cases.ts'
import type { ExplainRequest } from './explain.ts'

/** Without a `host`, it is derived from the path. */
export function toExplainRequest({
  request: { method, path },
  host,
  as,
}: Omit<TestCase, 'expect'>): ExplainRequest {
  const { plan, used_today = 0 } = typeof as === 'string' ? { plan: as } : as
  return { method, path, host: host ?? authorityHost(path), as: plan, usedToday: used_today }
}

/** With an absolute-form target, a client repeats its authority in `Host` (RFC 9112 §3.2.2). */
function authorityHost(path: string): string {
  return path.startsWith('/') ? 'localhost' : (/^[a-z]+:\/\/([^/?#]*)/i.exec(path)?.[1] ?? '')
}
