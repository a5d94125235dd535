// Checks the metrics page of the gateway with promtool, the tool of Prometheus.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Returns the findings of `promtool check metrics` and its exit code, which is 0 without findings. */
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
