// nginx with `auth_request`, in three variants: without a cache, with a cache in the auth service, and with a cache of
// 15 s in nginx.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandLine } from '../../test/support/process-stat.ts'
import { run } from '../../test/support/processes.ts'
import { peers, rememberSeconds } from '../row-names.ts'
import { authServicePeer, type Places } from './peer.ts'

export const nginx = contender(peers.nginx, {})
export const nginxRemembering = contender(peers.nginxRemembering, { remember: rememberSeconds })
export const nginxCache = contender(peers.nginxCache, {
  caching: `proxy_cache decisions;
      proxy_cache_key $http_authorization;
      proxy_cache_valid 200 15s;`,
})

/**
 * @param options `caching` contains the cache directives for nginx. `remember` is the number of seconds for which the
 *   auth service caches users.
 */
function contender(name: string, { caching = '', remember = 0 }) {
  return authServicePeer({
    name,
    program: 'nginx',
    remember,
    configure(places) {
      const file = join(places.folder, 'nginx.conf')
      writeFileSync(file, configuration(places, caching))
      return {
        flags: ['-c', file, '-p', places.folder],
        // The CPU time of nginx's cache loader does not count, because this process reads the cache once and ends after
        // a minute.
        counts: pid => !commandLine(pid).includes('cache loader'),
      }
    },
    versionOf: async program => (await run(program, ['-v'])).trim().replace('nginx version: ', ''),
  })
}

function configuration({ folder, port, upstream, decisions }: Places, caching: string): string {
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
