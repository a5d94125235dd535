// Caddy with `forward_auth`. For each request, Caddy calls an auth service.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../../test/support/processes.ts'
import { peers, rememberSeconds } from '../row-names.ts'
import { authServicePeer, type Places } from './peer.ts'

export const caddy = contender(peers.caddy, 0)
export const caddyRemembering = contender(peers.caddyRemembering, rememberSeconds)

function contender(name: string, remember: number) {
  return authServicePeer({
    name,
    program: 'caddy',
    remember,
    configure(places) {
      const { folder } = places
      const file = join(folder, 'Caddyfile')
      writeFileSync(file, configuration(places))
      return {
        flags: ['run', '--config', file, '--adapter', 'caddyfile'],
        env: { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      }
    },
    versionOf: async program => `Caddy ${(await run(program, ['version'])).trim().split(' ')[0]}`,
  })
}

function configuration({ port, upstream, decisions }: Places): string {
  // By default, Caddy keeps only 32 idle connections to the upstream, but the load uses more connections.
  const transport = 'transport http { \n keepalive_idle_conns_per_host 128 \n }'
  // In a `route` block, Caddy runs the directives in the written order. So it removes the client's identity headers
  // before it copies the identity headers of the auth service.
  return `{
  admin off
  auto_https off
}
# Without a host name, because Caddy responds to other hosts with an empty 200.
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
