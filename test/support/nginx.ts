// A real nginx between the gateway and an upstream of a test's: it says where its locations took each request.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canConnect, freePort, isProgram, type Server, searchPath, startServer } from './servers.ts'

/** The path of `nginx`, which is not on everybody's search path; `undefined` where there is none. */
export function findNginx(): string | undefined {
  return [...searchPath(), '/usr/sbin', '/usr/local/sbin']
    .map(folder => join(folder, 'nginx'))
    .find(isProgram)
}

/**
 * Its one guarded location and its catch-all pass to the same upstream, the target as it came, with where it went in
 * `X-Nginx-Location` (`guarded` or `public`). It keeps field names that nginx would drop as odd.
 * @param bin as from `findNginx` @param upstream URL @param guarded a prefix
 */
export async function startNginx(bin: string, upstream: string, guarded: string): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'peage-test-nginx-'))
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, configuration({ port, folder, upstream, guarded }))
  return startServer({
    program: bin,
    flags: ['-c', file, '-p', folder],
    folder,
    user: undefined,
    port,
    url: `http://127.0.0.1:${port}`,
    isReady: () => canConnect(port),
  })
}

interface Plan {
  port: number
  folder: string
  upstream: string
  guarded: string
}

function configuration({ port, folder, upstream, guarded }: Plan): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const pass = (location: string) => `proxy_set_header X-Nginx-Location ${location};
      proxy_set_header Connection "";
      proxy_pass ${upstream};`
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
    }
  }
}
`
}
