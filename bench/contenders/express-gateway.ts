// Express Gateway with its jwt policy. This policy trusts the claims of the token and does not look up the user.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, temporaryFolder } from '../../test/support/processes.ts'
import { freePort } from '../../test/support/servers.ts'
import type { Contender, Stage } from '../contender.ts'
import { peers } from '../row-names.ts'
import { peerRow, publicKey, startProxy } from './peer.ts'

const name = peers.expressGateway
const version = '1.16.11'

/** @param mayInstall whether npm may install Express Gateway into a temporary folder */
export function expressGateway(mayInstall: boolean): Contender {
  const { BENCH_EXPRESS_GATEWAY: given } = process.env
  const absence = 'run with --express-gateway, or set BENCH_EXPRESS_GATEWAY to a folder with the package'
  return {
    rows: [name],
    absence: () => (given || mayInstall ? undefined : absence),
    async start(stage) {
      const home = packageIn(given || (await install()))
      const port = await freePort()
      const folder = temporaryFolder()
      const settings = join(folder.path, 'config')
      await configure(settings, { home, port, stage })
      const program = join(folder.path, 'main.cjs')
      writeFileSync(program, `require(${JSON.stringify(home)})().load(${JSON.stringify(settings)}).run()`)
      const proxy = await startProxy({
        program: process.execPath,
        flags: [program],
        folder,
        port,
        env: {
          NODE_ENV: 'production',
          LOG_LEVEL: 'error',
          EG_DISABLE_CONFIG_WATCH: 'true',
          // `undefined` removes a variable. If these variables were set, Express Gateway would send its requests to the
          // upstream through the proxy that these variables name.
          http_proxy: undefined,
          HTTP_PROXY: undefined,
        },
      })
      const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
      return [peerRow(stage, { name, version: `Express Gateway ${version}`, proxy })]
    },
  }
}

function packageIn(folder: string): string {
  const path = join(folder, 'node_modules', 'express-gateway')
  if (!existsSync(path)) throw new Error(`no express-gateway in ${folder}`)
  return path
}

async function install(): Promise<string> {
  const { path: folder } = temporaryFolder()
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const words = ['install', '--ignore-scripts', '--no-audit', '--no-fund', `express-gateway@${version}`]
  await run('npm', words, { cwd: folder })
  return folder
}

async function configure(
  folder: string,
  { home, port, stage }: { home: string; port: number; stage: Stage },
): Promise<void> {
  mkdirSync(join(folder, 'models'), { recursive: true })
  const models = join(home, 'lib', 'config', 'models')
  for (const file of ['applications', 'credentials', 'users']) {
    const text = readFileSync(join(models, `${file}.json`), 'utf8')
    writeFileSync(join(folder, 'models', `${file}.json`), text)
  }
  const key = join(folder, 'key.pem')
  writeFileSync(key, await publicKey(stage))
  writeFileSync(join(folder, 'system.config.yml'), readFileSync(join(home, 'lib/config/system.config.yml')))
  // The configuration lists no algorithms, because the jwt policy does not allow ES256 in this list. Without the list,
  // the policy accepts every algorithm that fits the key.
  writeFileSync(
    join(folder, 'gateway.config.yml'),
    `http: { port: ${port}, hostname: 127.0.0.1 }
apiEndpoints: { all: { host: '*' } }
serviceEndpoints: { service: { url: 'http://127.0.0.1:${stage.upstream.port}' } }
policies: [jwt, request-transformer, proxy]
pipelines:
  all:
    apiEndpoints: [all]
    policies:
      - jwt:
          action: { secretOrPublicKeyFile: ${key}, issuer: peage, audience: peage, checkCredentialExistence: false }
      - request-transformer:
          action:
            headers: { add: { x-user-id: req.user.sub, x-user-plan: req.user.plan } }
      - proxy:
          action: { serviceEndpoint: service }
`,
  )
}
