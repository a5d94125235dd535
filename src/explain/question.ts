// A question about a request, from what was written in a case or on the command line.
import type { TestCase } from '../config/test-cases.ts'
import type { ExplainRequest } from './explain.ts'

/** @param written its host is made out where none is named */
export function toExplainRequest({
  request: { method, path },
  host,
  as,
}: Omit<TestCase, 'expect'>): ExplainRequest {
  const { plan, used_today = 0 } = typeof as === 'string' ? { plan: as } : as
  return { method, path, host: host ?? authorityHost(path), as: plan, usedToday: used_today }
}

/** A client names the same authority twice where the target is a whole URL (RFC 9112 §3.2.2). */
function authorityHost(path: string): string {
  return path.startsWith('/') ? 'localhost' : (/^[a-z]+:\/\/([^/?#]*)/i.exec(path)?.[1] ?? '')
}
