// Starts a real nginx, either between the gateway and an upstream, or with a `server` block from the test.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canConnect, freePort, type Server, startServer } from './servers.ts'

/**
 * Starts nginx with a guarded location and a catch-all location. Both forward the request target unchanged to the same
 * upstream. They set `X-Nginx-Location` to `guarded` or `public`. The settings keep headers with unusual names, which
 * nginx drops by default.
 * @param bin the path of nginx @param upstream the URL of the upstream @param guarded the path prefix to guard
 */
export function startNginx(bin: string, upstream: string, guarded: string): Promise<Server> {
  const pass = (location: string) => `proxy_set_header X-Nginx-Location ${location};
      proxy_set_header Connection "";
      proxy_pass ${upstream};`
  return startNginxServer(
    bin,
    'http',
    port => `
    listen 127.0.0.1:${port};
    # The gateway treats nginx's own refusals as responses of an upstream.
    add_header X-Upstream yes always;
    location = ${guarded} {
      ${pass('guarded')}
    }
    location ${guarded}/ {
      ${pass('guarded')}
    }
    location / {
      ${pass('public')}
    }`,
  )
}

/** @param server a function that gets a port and returns the content of the `server` block */
export function startNginxServer(
  bin: string,
  scheme: 'http' | 'https',
  server: (port: number) => string,
): Promise<Server> {
  return startNginxWith(
    bin,
    scheme,
    port => `
  underscores_in_headers on;
  ignore_invalid_headers off;
  large_client_header_buffers 8 32k;
  client_max_body_size 0;
  proxy_http_version 1.1;
  proxy_request_buffering off;
  server {
${server(port)}
  }`,
  )
}

/** @param http a function that gets a port and returns the content of the `http` block */
export async function startNginxWith(
  bin: string,
  scheme: 'http' | 'https',
  http: (port: number) => string,
): Promise<Server> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'peage-test-nginx-'))
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, configuration(folder, http(port)))
  return startServer({
    program: bin,
    flags: ['-c', file, '-p', folder],
    folder,
    user: undefined,
    port,
    url: `${scheme}://127.0.0.1:${port}`,
    isReady: () => canConnect(port),
  })
}

function configuration(folder: string, http: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 512; }
http {
  access_log off;
  ${temporary.map(name => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
${http}
}
`
}
