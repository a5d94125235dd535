// nginx with auth_request: asking the auth service each time, and remembering its decision for 15 s.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandLine } from '../costs.mjs'
import { freePort } from '../ports.mjs'
import { run, startServer, temporaryFolder } from '../processes.mjs'
import { findProgram } from '../programs.mjs'
import { lacksPostgres, peerRow, startAuthService } from './peer.mjs'

export const nginxUncached = nginx('nginx + auth_request', '')
export const nginxCached = nginx(
  'nginx + auth_request, 15 s cache',
  `proxy_cache decisions;
      proxy_cache_key $http_authorization;
      proxy_cache_valid 200 15s;`,
)

/**
 * @param {string} name
 * @param {string} caching of the decisions
 * @returns {import('../contender.mjs').Contender}
 */
function nginx(name, caching) {
  return {
    rows: [name],
    absence: stage => (findProgram('nginx') === undefined ? 'not installed' : lacksPostgres(stage)),
    async start(stage) {
      const program = /** @type {string} */ (findProgram('nginx'))
      const decisions = await startAuthService(stage)
      const port = await freePort()
      const { path: folder } = temporaryFolder()
      const file = join(folder, 'nginx.conf')
      writeFileSync(
        file,
        configuration({ folder, port, upstream: stage.upstream.port, decisions: decisions.port, caching }),
      )
      const proxy = await startServer(program, ['-c', file, '-p', folder], {
        port,
        // It looks at the cache once and is gone after a minute.
        counts: pid => !commandLine(pid).includes('cache loader'),
      })
      const version = (await run(program, ['-v'])).trim().replace('nginx version: ', '')
      return [peerRow(name, [proxy, decisions], stage, { version })]
    },
  }
}

/** @param {{ folder: string, port: number, upstream: number, decisions: number, caching: string }} plan */
function configuration({ folder, port, upstream, decisions, caching }) {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const upstreamOf = (/** @type {string} */ name, /** @type {number} */ at) =>
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
