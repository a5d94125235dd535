// Starts nginx and Caddy with the files of deploy/forward-auth. Replaces the addresses, and can add settings.
import { inject } from 'vitest'
import { read } from '../deploy/read.ts'
import { startCaddy } from '../support/caddy.ts'
import { startNginxWith } from '../support/nginx.ts'
import type { Server } from '../support/servers.ts'

/** @param peage the URL of the gateway @param service the URL of the service */
export type StartProxy = (peage: string, service: string) => Promise<Server>

/** @param settings additional directives for the `http` block */
export function nginxWith(settings = ''): StartProxy {
  return (peage, service) =>
    startNginxWith(
      inject('nginxBin'),
      'http',
      port =>
        settings +
        replaced('nginx.conf', {
          'listen 80;': `listen 127.0.0.1:${port};`,
          '127.0.0.1:8080': new URL(peage).host,
          '127.0.0.1:9000': new URL(service).host,
        }),
    )
}

/** @param settings additional directives for the `forward_auth` block */
export function caddyWith(settings = ''): StartProxy {
  return (peage, service) =>
    startCaddy(inject('caddyBin'), port =>
      replaced('Caddyfile', {
        '\napi.example.com {': `\nhttp://:${port} {`,
        'uri /.peage/authorize?\n': `uri /.peage/authorize?\n${settings}`,
        '127.0.0.1:8080': new URL(peage).host,
        '127.0.0.1:9000': new URL(service).host,
      }),
    )
}

/** @throws an error if the file does not contain a text that must be replaced */
function replaced(name: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce(
    (text, [from, to]) => {
      if (!text.includes(from)) throw new Error(`deploy/forward-auth/${name} does not contain ${from}`)
      return text.replaceAll(from, to)
    },
    read(`deploy/forward-auth/${name}`),
  )
}
