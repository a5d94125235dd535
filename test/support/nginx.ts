// A real nginx: between the gateway and an upstream, where it says where its locations took each request, or as a test has it.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canConnect, freePort, type Server, startServer } from './servers.ts'

/**
 * Its one guarded location and its catch-all pass to the same upstream, the target as it came, with where it went in
 * `X-Nginx-Location` (`guarded` or `public`). It keeps field names that nginx would drop as odd.
 * @param bin as from `findProgram` @param upstream URL @param guarded a prefix
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
    # Its own refusals are an upstream's answers to the gateway.
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

/** @param server what stands in the block of its one server, which listens on the port */
export async function startNginxServer(
  bin: string,
  scheme: 'http' | 'https',
  server: (port: number) => string,
): Promise<Server> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'peage-test-nginx-'))
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, configuration(folder, server(port)))
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

function configuration(folder: string, server: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 512; }
http {
  access_log off;
  ${temporary.map(name => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  underscores_in_headers on;
  ignore_invalid_headers off;
  large_client_header_buffers 8 32k;
  client_max_body_size 0;
  proxy_http_version 1.1;
  proxy_request_buffering off;
  server {
${server}
  }
}
`
}
