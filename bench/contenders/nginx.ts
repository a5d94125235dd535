// nginx with auth_request: without a cache, with an auth service that remembers, and with a cache of its own for 15 s.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandLine } from '../../test/support/process-stat.ts'
import { run, temporaryFolder } from '../../test/support/processes.ts'
import { findProgram, freePort } from '../../test/support/servers.ts'
import type { Contender } from '../contender.ts'
import { peers, rememberSeconds } from '../row-names.ts'
import { lacksPostgres, peerRow, startAuthService, startProxy } from './peer.ts'

export const nginx = contender(peers.nginx, {})
export const nginxRemembering = contender(peers.nginxRemembering, { remember: rememberSeconds })
export const nginxCache = contender(peers.nginxCache, {
  caching: `proxy_cache decisions;
      proxy_cache_key $http_authorization;
      proxy_cache_valid 200 15s;`,
})

/** @param caching directives for the decisions; `remember` is the auth service's, in seconds */
function contender(name: string, { caching = '', remember = 0 }): Contender {
  const program = findProgram('nginx')
  return {
    rows: [name],
    absence: stage => (program === undefined ? 'not installed' : lacksPostgres(stage)),
    async start(stage) {
      if (program === undefined) throw new Error('not installed')
      const authService = await startAuthService(stage, remember)
      const port = await freePort()
      const folder = temporaryFolder()
      const file = join(folder.path, 'nginx.conf')
      const ports = { port, upstream: stage.upstream.port, decisions: authService.port }
      writeFileSync(file, configuration({ ...ports, folder: folder.path, caching }))
      const proxy = await startProxy({
        program,
        flags: ['-c', file, '-p', folder.path],
        folder,
        port,
        // It reads the cache once and ends after a minute.
        counts: pid => !commandLine(pid).includes('cache loader'),
      })
      const version = (await run(program, ['-v'])).trim().replace('nginx version: ', '')
      return [peerRow(stage, { name, version, proxy, authService })]
    },
  }
}

interface Configuration {
  readonly folder: string
  readonly port: number
  readonly upstream: number
  readonly decisions: number
  readonly caching: string
}

function configuration({ folder, port, upstream, decisions, caching }: Configuration): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const upstreamOf = (name: string, at: number) =>
    `upstream ${name} { server 127.0.0.1:${at}; keepalive 128; keepalive_requests 1000000000; }`
  return `daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  ${temporary.map(name => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  keepalive_requests 1000000000;
  proxy_cache_path ${folder}/decisions keys_zone=decisions:1m;
  ${upstreamOf('service', upstream)}
  ${upstreamOf('decisions', decisions)}
  proxy_http_version 1.1;
  server {
    listen 127.0.0.1:${port};
    location / {
      auth_request /decision;
      auth_request_set $user_id $upstream_http_x_user_id;
      auth_request_set $user_plan $upstream_http_x_user_plan;
      proxy_set_header Connection "";
      proxy_set_header X-User-Id $user_id;
      proxy_set_header X-User-Plan $user_plan;
      proxy_pass http://service;
    }
    location = /decision {
      internal;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Connection "";
      proxy_pass http://decisions/;
      ${caching}
    }
  }
}
`
}
