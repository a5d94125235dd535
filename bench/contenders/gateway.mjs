// The gateway as an operator starts it: embedded database, request log on and to a file.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProgram, temporaryFolder } from '../processes.mjs'

/**
 * @param {string} name of the row
 * @param {string} cli the built command line, from bench/ or absolute
 * @returns {import('../contender.mjs').Contender}
 */
export function gateway(name, cli = '../dist/cli.js') {
  return {
    name,
    carriesRequestId: true,
    async start(upstream) {
      const folder = temporaryFolder()
      const file = join(folder.path, 'gateway.yaml')
      writeFileSync(
        file,
        `server: { listen: '127.0.0.1:0' }
storage: { data_dir: ${JSON.stringify(join(folder.path, 'data'))} }
upstreams: { service: { targets: ['http://127.0.0.1:${upstream.port}'] } }
routes:
  - { path: /public/*, upstream: service, auth: none }
`,
      )
      const running = await startProgram(cli, ['start', '-c', file])
      return {
        ...running,
        async stop() {
          await running.stop()
          folder.remove()
        },
      }
    },
  }
}
