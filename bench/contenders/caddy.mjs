// Caddy with forward_auth.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../ports.mjs'
import { run, startServer, temporaryFolder } from '../processes.mjs'
import { findProgram } from '../programs.mjs'
import { lacksPostgres, peerRow, startAuthService } from './peer.mjs'

const name = 'Caddy forward_auth'

/** @type {import('../contender.mjs').Contender} */
export const caddy = {
  rows: [name],
  absence: stage => (findProgram('caddy') === undefined ? 'not installed' : lacksPostgres(stage)),
  async start(stage) {
    const program = /** @type {string} */ (findProgram('caddy'))
    const decisions = await startAuthService(stage)
    const port = await freePort()
    const { path: folder } = temporaryFolder()
    const file = join(folder, 'Caddyfile')
    writeFileSync(file, configuration({ port, upstream: stage.upstream.port, decisions: decisions.port }))
    const proxy = await startServer(program, ['run', '--config', file, '--adapter', 'caddyfile'], {
      port,
      env: { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    })
    const version = `Caddy ${(await run(program, ['version'])).trim().split(' ')[0]}`
    return [peerRow(name, [proxy, decisions], stage, { version })]
  },
}

/** @param {{ port: number, upstream: number, decisions: number }} plan */
function configuration({ port, upstream, decisions }) {
  // By default it keeps 32 connections, fewer than are asked for here.
  const transport = 'transport http { \n keepalive_idle_conns_per_host 128 \n }'
  // In a `route` the order is the written one: identity fields go before the auth service sets them.
  return `{
  admin off
  auto_https off
}
# Whatever the host that is asked for: to any other than its own it answers 200 without a word.
http://:${port} {
  bind 127.0.0.1
  route {
    request_header -X-User-Id
    request_header -X-User-Plan
    forward_auth 127.0.0.1:${decisions} {
      uri /
      copy_headers X-User-Id X-User-Plan
      ${transport}
    }
    reverse_proxy 127.0.0.1:${upstream} {
      ${transport}
    }
  }
}
`
}
