// Starts a real Prometheus that scrapes the gateway of a test several times a second.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { canConnect, freePort, type Server, startServer } from './servers.ts'

export interface Prometheus extends Server {
  /** Returns how many series a PromQL expression has now. @throws Error with the error message of Prometheus */
  count(expression: string): Promise<number>
}

/**
 * @param promtool the path of promtool; `prometheus` must be in the same folder
 * @param admin the address of the admin listener
 */
export async function startPrometheus(promtool: string, admin: string): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'peage-test-prometheus-'))
  const port = await freePort()
  const file = join(folder, 'prometheus.yml')
  writeFileSync(
    file,
    `global: { scrape_interval: 250ms, scrape_timeout: 250ms }
scrape_configs: [{ job_name: peage, static_configs: [{ targets: ['${new URL(admin).host}'] }] }]
`,
  )
  const server = await startServer({
    program: join(dirname(promtool), 'prometheus'),
    flags: [
      `--config.file=${file}`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    folder,
    user: undefined,
    port,
    url: `http://127.0.0.1:${port}`,
    isReady: () => canConnect(port),
  })
  return {
    ...server,
    async count(expression) {
      const answer = await fetch(`${server.url}/api/v1/query`, {
        method: 'POST',
        body: new URLSearchParams({ query: expression }),
      })
      const { data, error } = (await answer.json()) as { data?: { result: unknown[] }; error?: string }
      if (data === undefined) throw new Error(`${expression}: ${error}`)
      return data.result.length
    },
  }
}
