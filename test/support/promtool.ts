// Prometheus' own tool: whether it can read what the gateway exposes, and what it would have otherwise.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** What `promtool check metrics` finds wrong with a page, and its exit code: 0 where that is nothing. */
export async function checkMetrics(bin: string, page: string): Promise<{ code: number; says: string }> {
  const child = spawn(bin, ['check', 'metrics'])
  let says = ''
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', chunk => {
      says += chunk
    })
  }
  child.stdin.end(page)
  const [code] = (await once(child, 'close')) as [number]
  return { code, says }
}
