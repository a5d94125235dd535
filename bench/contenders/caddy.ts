// Caddy with forward_auth.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, temporaryFolder } from '../../test/support/processes.ts'
import { findProgram, freePort } from '../../test/support/servers.ts'
import type { Contender } from '../contender.ts'
import { peers, rememberSeconds } from '../row-names.ts'
import { lacksPostgres, peerRow, startAuthService, startProxy } from './peer.ts'

export const caddy = contender(peers.caddy, 0)
export const caddyRemembering = contender(peers.caddyRemembering, rememberSeconds)

/** @param remember seconds, of the auth service */
function contender(name: string, remember: number): Contender {
  const program = findProgram('caddy')
  return {
    rows: [name],
    absence: stage => (program === undefined ? 'not installed' : lacksPostgres(stage)),
    async start(stage) {
      if (program === undefined) throw new Error('not installed')
      const authService = await startAuthService(stage, remember)
      const port = await freePort()
      const folder = temporaryFolder()
      const file = join(folder.path, 'Caddyfile')
      writeFileSync(file, configuration(port, stage.upstream.port, authService.port))
      const proxy = await startProxy({
        program,
        flags: ['run', '--config', file, '--adapter', 'caddyfile'],
        folder,
        port,
        env: { HOME: folder.path, XDG_DATA_HOME: folder.path, XDG_CONFIG_HOME: folder.path },
      })
      const version = `Caddy ${(await run(program, ['version'])).trim().split(' ')[0]}`
      return [peerRow(stage, { name, version, proxy, authService })]
    },
  }
}

function configuration(port: number, upstream: number, decisions: number): string {
  // By default Caddy keeps 32 connections, fewer than the load has.
  const transport = 'transport http { \n keepalive_idle_conns_per_host 128 \n }'
  // A `route` keeps the written order: identity fields are removed before the auth service sets them.
  return `{
  admin off
  auto_https off
}
# For any host: to a request for another host Caddy responds with an empty 200.
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
