// Starts a real Caddy with a Caddyfile from the test.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canConnect, freePort, type Server, startServer } from './servers.ts'

/** @param bin the path of caddy @param sites a function that gets a port and returns the sites of the Caddyfile */
export async function startCaddy(bin: string, sites: (port: number) => string): Promise<Server> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'peage-test-caddy-'))
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, `{\n\tadmin off\n\tauto_https off\n}\n${sites(port)}`)
  return startServer({
    program: bin,
    flags: ['run', '--config', file, '--adapter', 'caddyfile'],
    folder,
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    user: undefined,
    port,
    url: `http://127.0.0.1:${port}`,
    isReady: () => canConnect(port),
  })
}
